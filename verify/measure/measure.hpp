// Measures a grid: each launch is looked at first and timed only when it was right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/measure/grid.hpp"

namespace indexpool::verify::timing {

struct MeasureOptions {
  DeviceSpec device;          // predictions are for this one
  int samples = 20;           // of each kind of time; fewer where a launch takes long
  std::int64_t checked = 12;  // pools or rows that are looked at
  std::uint64_t seed = 1;
  bool launch_once = false;  // look, but do not time: for a profiler
  std::string repeat;        // command line that repeats the grid
  // Kernels by target and name; another one stands for a kernel with a fault.
  const kernels::Kernel* (*find)(std::string_view target,
                                 std::string_view name) = kernels::find_kernel;
  std::function<void(const std::string&)> progress;  // may be empty
};

// Records of one point: with a clock one for each way of timing (cold, warm, in a graph), without
// one the counted traffic beside the declared. A launch that was wrong, did not fit into memory or
// is not supported gives one record that says so, and no time.
std::vector<Record> measure_point(kernels::Target& target, const Point& point,
                                  const Geometry& geometry, const MeasureOptions& options);
std::vector<Record> measure_grid(kernels::Target& target, const Grid& grid,
                                 const MeasureOptions& options);

}  // namespace indexpool::verify::timing
