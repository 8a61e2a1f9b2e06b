// What the hardware counted over a grid that was launched under a profiler, beside what the kernels
// declare.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/measure/grid.hpp"

namespace indexpool::verify::timing {

// One profiled launch; metrics in bytes, seconds and plain counts.
struct CountedLaunch {
  std::string function;  // "pool_kernel<...>(...)", as the profiler writes it
  std::map<std::string, double> metrics;
};

// The CSV of `ncu --csv --page raw`: whatever precedes its heading is skipped, units are those of
// its second line. Throws ConfigError with line and column for a number, a unit or a column that is
// not as expected, and for a file without launches.
std::vector<CountedLaunch> read_counters(std::string_view text, const std::string& file);

// The device function that a kernel launches: what to name in the profiler's filter.
std::string_view device_function(std::string_view kernel);

// One launch per point, in order (measure --launch-once). Throws ConfigError when the numbers
// differ or a launch is not of its point's kernel. The verdict's check "dram_bytes" holds when the
// bytes that passed between DRAM and L2 are the declared ones within `tolerance`; of what is
// written, as much as the L2 holds may still lie there when the kernel ends.
struct CounterOptions {
  std::string repeat;
  double tolerance = 0.03;
  // Smaller launches are shown and not judged: the L2 decides there what reaches DRAM.
  Bytes least_judged = Bytes(200'000'000);
};
std::vector<Record> counter_records(const Grid& grid, const std::vector<CountedLaunch>& launches,
                                    const DeviceSpec& device, const CounterOptions& options);

}  // namespace indexpool::verify::timing
