#include "indexpool/verify/measure/measure.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/measure/place.hpp"
#include "indexpool/verify/measure/predicted.hpp"
#include "indexpool/verify/measure/sample.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::timing {
namespace {

// A launch as long as this is sampled less often, so that a grid ends.
constexpr double long_launch_s = 2e-3;
constexpr int least_samples = 5;
// Launches of a graph: as many as make the launch of the graph itself small, within a time.
constexpr int most_graph_launches = 20, least_graph_launches = 2;
constexpr double graph_time_s = 4e-3;

Record start(const kernels::Target& target, const Point& point, const Geometry& geometry,
             const MeasureOptions& options) {
  Record record;
  record.seed = options.seed;
  store_point(point, geometry, record);
  record.reference = "reference, binary64, at sampled places";
  record.environment = target.environment();
  record.repeat = options.repeat;
  return record;
}

// Launches once and judges what was written.
void verify_launch(kernels::Target& target, const kernels::Kernel& kernel, const Placed& placed,
                   const MeasureOptions& options, Record& record) {
  kernels::LaunchContext& where = target.context();
  if (where.simt != nullptr) where.simt->counted = {};
  kernel.launch(placed.args, where);
  target.synchronize();
  if (where.simt != nullptr) record.counted = where.simt->counted;
  SampleOptions how;
  how.seed = options.seed;
  how.samples = options.checked;
  if (kernel.accumulation != nullptr) {
    how.accumulation = accumulation_model(kernel.accumulation(placed.args));
  }
  std::vector<Check> checks = check_samples(target, placed, how);
  checks.push_back(check_guards(target.check_guards()));
  if (record.counted) checks.push_back(check_traffic(*record.declared, *record.counted));
  record.verdict = assemble(std::move(checks));
}

bool usable(const Verdict& verdict) {
  return verdict.status == Status::passed || verdict.status == Status::marginal;
}

void add_prediction(const Work& work, const DeviceSpec& device, const CostOptions& how,
                    Record& record) {
  record.prediction = predict(work, device, how);
}

// The record once for each way of timing.
std::vector<Record> timed(kernels::Target& target, const kernels::Kernel& kernel,
                          const Placed& placed, const Work& work, const MeasureOptions& options,
                          const Record& record) {
  const auto body = [&] { kernel.launch(placed.args, target.context()); };
  std::vector<Record> records;
  int samples = options.samples;
  const auto keep = [&](std::optional<Measurement> measurement) {
    if (!measurement) return;
    if (measurement->median.value > long_launch_s) samples = std::min(samples, least_samples);
    Record each = record;
    add_prediction(work, options.device, timed_as(*measurement), each);
    each.measurement = std::move(measurement);
    records.push_back(std::move(each));
  };
  keep(target.measure(body, samples, /*cold_l2=*/true));
  keep(target.measure(body, samples, /*cold_l2=*/false));
  if (records.empty()) return records;
  const double launches = graph_time_s / records.back().measurement->median.value;
  keep(target.replay(
      body,
      static_cast<int>(std::clamp<double>(launches, least_graph_launches, most_graph_launches)),
      std::min(samples, least_samples)));
  return records;
}

std::vector<Record> measure_with(kernels::Target& target, const kernels::Kernel& kernel,
                                 const Point& point, const Geometry& geometry,
                                 const MeasureOptions& options, Record record) {
  HostArguments host = host_arguments(point, geometry);
  if (const auto refusal = kernel.unsupported(host.args)) {
    record.verdict = refuse(Status::unsupported, *refusal);
    return {std::move(record)};
  }
  const Work work = kernel.work(host.args);
  store_work(work, record);
  const Placed placed = place(target, std::move(host), options.seed);
  verify_launch(target, kernel, placed, options, record);
  std::vector<Record> records;
  if (usable(record.verdict) && !options.launch_once) {
    records = timed(target, kernel, placed, work, options, record);
  }
  if (!records.empty()) return records;
  add_prediction(work, options.device, {}, record);
  return {std::move(record)};
}

}  // namespace

std::vector<Record> measure_point(kernels::Target& target, const Point& point,
                                  const Geometry& geometry, const MeasureOptions& options) {
  Record record = start(target, point, geometry, options);
  const kernels::Kernel* const kernel = options.find(target.name(), point.kernel);
  if (kernel == nullptr) {
    throw ConfigError(
        fmt::format("no kernel \"{}\" was built for target {}", point.kernel, target.name()));
  }
  try {
    return measure_with(target, *kernel, point, geometry, options, record);
  } catch (const EnvironmentError& error) {
    record.verdict = refuse(Status::error, error.what());
  } catch (const sim::simt::ExecutorError& error) {
    record.verdict = refuse(Status::error, error.kind + ": " + error.what());
  }
  return {std::move(record)};
}

std::vector<Record> measure_grid(kernels::Target& target, const Grid& grid,
                                 const MeasureOptions& options) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < grid.points.size(); ++i) {
    const Point& point = grid.points[i];
    if (options.progress)
      options.progress(fmt::format("{}/{} {}", i + 1, grid.points.size(), describe(point)));
    for (Record& record : measure_point(target, point, grid.geometry, options))
      records.push_back(std::move(record));
  }
  return records;
}

}  // namespace indexpool::verify::timing
