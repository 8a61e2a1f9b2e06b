#include "indexpool/model/calibration/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/calibration/constant_maker.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

// Four digits say more than a measurement repeats to.
double rounded(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  return std::stod(fmt::format("{:.3e}", std::round(value / unit) * unit));
}

}  // namespace

Constant ConstantMaker::measured(const Estimate& estimate, const std::string& how) const {
  return {rounded(estimate.value), rounded(estimate.low), rounded(estimate.high),
          fmt::format("own measurement, {}: {}", samples_.facts.date, how), ConstantKind::measured};
}

void ConstantMaker::launches() {
  std::vector<double> medians, ends;
  std::vector<std::int64_t> grids;
  for (const LaunchSample& sample : samples_.launches) {
    if (std::find(grids.begin(), grids.end(), sample.blocks) == grids.end()) {
      grids.push_back(sample.blocks);
    }
    if (sample.launch == Launch::graph) continue;
    medians.push_back(sample.seconds.median);
    ends.push_back(sample.seconds.low);
    ends.push_back(sample.seconds.high);
  }
  Estimate launch = spread_of(medians, "launches in a stream");
  launch.low = *std::min_element(ends.begin(), ends.end());
  launch.high = *std::max_element(ends.begin(), ends.end());
  device_.launch_s = measured(
      launch, fmt::format("an empty kernel of {} grids between two events, behind a flush of the "
                          "L2 and behind a held stream",
                          grids.size()));
  std::vector<double> slopes, low, high;
  for (const std::int64_t blocks : grids) {
    std::vector<std::pair<double, double>> points;
    for (const LaunchSample& sample : samples_.launches) {
      const auto count = static_cast<double>(sample.launches);
      if (sample.launch == Launch::graph && sample.blocks == blocks) {
        points.emplace_back(count, count * sample.seconds.median);
      }
    }
    const Estimate slope = slope_of(std::move(points), "empty kernels in a graph");
    slopes.push_back(slope.value);
    low.push_back(slope.low);
    high.push_back(slope.high);
  }
  Estimate graph = spread_of(slopes, "empty kernels in a graph");
  graph.low = *std::min_element(low.begin(), low.end());
  graph.high = *std::max_element(high.begin(), high.end());
  device_.graph_launch_s = measured(
      graph, fmt::format("what one more empty kernel in a graph takes, {} grids", grids.size()));
}

DeviceSpec calibrate(const Samples& samples, const std::string& name,
                     const std::optional<DeviceSpec>& base) {
  const DeviceFacts& facts = samples.facts;
  if (base && base->compute_capability != facts.compute_capability) {
    throw ConfigError(fmt::format("the base {} has compute capability {}, this {} has {}",
                                  base->name, base->compute_capability, facts.name,
                                  facts.compute_capability));
  }
  DeviceSpec device;
  device.name = name;
  device.compute_capability = facts.compute_capability;
  device.sm_count = facts.sm_count;
  device.warps_per_sm = facts.warps_per_sm;
  device.memory = Bytes(facts.memory_bytes);
  device.l2_capacity = Bytes(facts.l2_bytes);
  device.shared_memory_per_sm = Bytes(facts.shared_bytes_per_sm);
  device.source = fmt::format(
      "own measurement of one {} ({} SMs, driver {}, {}, {}; CUDA events, medians, clocks as "
      "found); sizes as the driver tells them{}",
      facts.name, facts.sm_count, facts.driver, facts.toolkit, facts.date,
      base ? "; what is not measured as in " + base->name : "");
  ConstantMaker maker(samples, device);
  maker.clocks();
  maker.memory(base);
  maker.cache();
  maker.streaming_multiprocessors();
  maker.matrix();
  maker.latencies();
  maker.launches();
  return device;
}

}  // namespace indexpool::calibration
