#include "indexpool/verify/measure/predicted.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/arguments.hpp"

namespace indexpool::verify::timing {
namespace {

constexpr const char* rows_key = "rows_per_sequence";

}  // namespace

void store_point(const Point& point, const Geometry& geometry, Record& record) {
  Problem problem;
  problem.indexer = geometry.indexer;
  problem.mode = point.mode;
  problem.lengths.assign(static_cast<std::size_t>(point.batch), point.tokens);
  problem.states_per_page = geometry.states_per_page;
  problem.fill = "random words";
  problem.seed = record.seed;
  record.case_name = describe(point);
  record.op = point.op;
  record.implementation = point.kernel;
  record.problem = std::move(problem);
  record.values[rows_key] = static_cast<double>(point.rows);
  record.values["tokens"] = static_cast<double>(point.tokens);
  record.values["batch"] = static_cast<double>(point.batch);
}

bool is_measured_point(const Record& record) {
  return record.problem && record.values.contains(rows_key);
}

StoredPoint stored_point(const Record& record) {
  const auto fail = [&](const char* what) {
    throw ConfigError(fmt::format("record \"{}\": {}; expected one that `indexpool measure` wrote",
                                  record.case_name, what));
  };
  if (!is_measured_point(record)) fail("has no problem or no rows_per_sequence");
  const Problem& problem = *record.problem;
  const double rows = record.values.at(rows_key);
  if (problem.lengths.empty()) fail("its problem has no sequence");
  for (const std::int64_t length : problem.lengths)
    if (length != problem.lengths.front() || length < 1) fail("its sequences differ in length");
  if (!(rows >= 1) || rows > 1e9 || rows != std::floor(rows)) fail("rows_per_sequence is no count");
  validate(problem, "record \"" + record.case_name + "\": ");
  return {{record.op, record.implementation, problem.mode, problem.lengths.front(),
           std::ssize(problem.lengths), static_cast<std::int64_t>(rows)},
          {problem.indexer, problem.states_per_page}};
}

Work declared_work(const Point& point, const Geometry& geometry) {
  const kernels::Kernel* const kernel = kernels::find_kernel("simt", point.kernel);
  if (kernel == nullptr) {
    throw ConfigError(
        fmt::format("unknown kernel \"{}\" of the operation {}", point.kernel, point.op));
  }
  const HostArguments host = host_arguments(point, geometry);
  if (const auto refusal = kernel->unsupported(host.args)) {
    throw ConfigError(
        fmt::format("{}: {} does not take it: {}", describe(point), point.kernel, *refusal));
  }
  return kernel->work(host.args);
}

void store_work(const Work& work, Record& record) {
  const auto store = [&record](const char* name, double value) {
    record.values[fmt::format("work_{}", name)] = value;
  };
  store("unique_read_bytes", static_cast<double>(work.unique_read.value));
  store("unique_write_bytes", static_cast<double>(work.unique_write.value));
  store("reread_bytes", static_cast<double>(work.reread.value));
  store("matrix_flop", work.matrix_flop.value);
  store("f32_flop", work.f32_flop.value);
  store("blocks", static_cast<double>(work.blocks));
  store("threads_per_block", static_cast<double>(work.threads_per_block));
  store("blocks_per_sm", static_cast<double>(work.blocks_per_sm));
  store("in_flight_per_block_bytes", static_cast<double>(work.in_flight_per_block.value));
  store("idle_blocks", static_cast<double>(work.idle_blocks));
  store("warp_instructions", work.instructions.issued);
  store("serial_latency_s", work.serial_latency.value);
  record.declared = work.traffic;
}

CostOptions timed_as(const Measurement& measurement) {
  CostOptions options;
  options.warm_l2 = measurement.cache == "warm";
  options.graph_launch = measurement.clock == "graph_replay";
  return options;
}

Record predicted_anew(Record record, const DeviceSpec& device) {
  const StoredPoint at = stored_point(record);
  const Work work = declared_work(at.point, at.geometry);
  std::erase_if(record.values, [](const auto& value) { return value.first.starts_with("work_"); });
  store_work(work, record);
  record.prediction =
      predict(work, device, record.measurement ? timed_as(*record.measurement) : CostOptions());
  return record;
}

}  // namespace indexpool::verify::timing
