#include "indexpool/verify/measure/counters.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/measure/predicted.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::timing {
namespace {

struct Function {
  std::string_view kernel, function;
};
constexpr Function functions[] = {
    {"pool", "pool_kernel"},      {"seed_tail", "seed_tail_kernel"},
    {"append", "append_kernel"},  {"quantize_query", "quantize_query_kernel"},
    {"logits_mma", "mma_logits"}, {"logits_e4m3", "mma_logits"},
    {"logits_fma", "fma_logits"}, {"topk", "topk_row"}};

struct Metric {
  const char* metric;  // of the profiler
  const char* value;   // in a record
  bool needed;
};
constexpr Metric metrics[] = {{"dram__bytes_read.sum", "dram_read_bytes", true},
                              {"dram__bytes_write.sum", "dram_write_bytes", true},
                              {"lts__t_bytes.sum", "l2_bytes", false},
                              {"smsp__inst_executed.sum", "warp_instructions", false},
                              {"gpu__time_duration.sum", "profiled_s", false},
                              {"sm__inst_executed_pipe_tensor.sum", "matrix_instructions", false}};

void store_metrics(const CountedLaunch& launch, Record& record) {
  for (const Metric& each : metrics) {
    const auto found = launch.metrics.find(each.metric);
    if (found != launch.metrics.end()) {
      record.values[each.value] = found->second;
    } else if (each.needed) {
      throw ConfigError(fmt::format("{}: found no metric {}; name it in ncu's --metrics",
                                    launch.function, each.metric));
    }
  }
}

double dram_bytes(const Record& record) {
  return record.values.at("dram_read_bytes") + record.values.at("dram_write_bytes");
}

Check check_dram(const Record& record, const Work& work, const DeviceSpec& device,
                 const CounterOptions& options) {
  Tally tally("dram_bytes");
  const double expected = static_cast<double>(record.prediction->hbm_bytes.value);
  const double counted = dram_bytes(record);
  if (work.unique_read + work.unique_write < options.least_judged) {
    tally.note(fmt::format("{:.4g} MB are less than is judged", expected / 1e6));
    return std::move(tally).finish();
  }
  const double kept = static_cast<double>(std::min(work.unique_write, device.l2_capacity).value);
  const double low = (expected - kept) * (1 - options.tolerance);
  const double high = expected * (1 + options.tolerance);
  tally.compare(counted >= low && counted <= high, [&] {
    return fmt::format("{:.6g} MB passed between DRAM and L2, {:.6g} MB are predicted: {:+.2f} %",
                       counted / 1e6, expected / 1e6, (counted / expected - 1) * 100);
  });
  return std::move(tally).finish();
}

}  // namespace

std::string_view device_function(std::string_view kernel) {
  for (const Function& each : functions)
    if (each.kernel == kernel) return each.function;
  throw ConfigError(fmt::format("no device function is known for the kernel \"{}\"", kernel));
}

std::vector<Record> counter_records(const Grid& grid, const std::vector<CountedLaunch>& launches,
                                    const DeviceSpec& device, const CounterOptions& options) {
  if (launches.size() != grid.points.size()) {
    throw ConfigError(fmt::format(
        "found {} profiled launches, expected {}: one for each point of the grid {}; profile "
        "`indexpool measure --launch-once` with the same grid and operations",
        launches.size(), grid.points.size(), grid.name));
  }
  std::vector<Record> records;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Point& point = grid.points[i];
    if (launches[i].function.find(device_function(point.kernel)) == std::string::npos) {
      throw ConfigError(fmt::format("launch {} is of {}, expected {} for {}", i + 1,
                                    launches[i].function, device_function(point.kernel),
                                    describe(point)));
    }
    Record record;
    store_point(point, grid.geometry, record);
    record.reference = "hardware counters";
    record.environment.target = "cuda";
    record.environment.device = device.name;
    record.repeat = options.repeat;
    const Work work = declared_work(point, grid.geometry);
    store_work(work, record);
    store_metrics(launches[i], record);
    record.prediction = predict(work, device);
    record.values["dram_over_predicted"] =
        dram_bytes(record) / static_cast<double>(record.prediction->hbm_bytes.value);
    if (work.instructions.issued > 0 && record.values.contains("warp_instructions"))
      record.values["instructions_over_declared"] =
          record.values["warp_instructions"] / work.instructions.issued;
    record.verdict = assemble({check_dram(record, work, device, options)});
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace indexpool::verify::timing
