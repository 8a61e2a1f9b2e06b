// What a calibration measures on a device, before anything is fitted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace indexpool::calibration {

// What the driver says of the device.
struct DeviceFacts {
  std::string name;                // "NVIDIA H200"
  std::string compute_capability;  // "9.0"
  std::string driver, toolkit, date;
  std::int64_t sm_count = 0, warps_per_sm = 0;
  std::int64_t memory_bytes = 0, l2_bytes = 0, shared_bytes_per_sm = 0;
  double memory_peak_bytes_per_s = 0;  // memory clock times bus width

  bool operator==(const DeviceFacts&) const = default;
};

// Repeats of one run: median, 10th and 90th percentile in seconds.
struct Times {
  double median = 0, low = 0, high = 0;

  bool operator==(const Times&) const = default;
};

// One pass over device memory by grid-stride accesses of 16 bytes.
enum class Access { read, write, copy };
struct StreamSample {
  Access access = Access::read;
  std::int64_t bytes = 0;  // read and written together
  std::int64_t threads_per_sm = 0;
  std::int64_t accesses_in_flight = 0;  // that a thread issues before it waits
  Times seconds;

  std::int64_t in_flight_bytes_per_sm() const { return 16 * threads_per_sm * accesses_in_flight; }
  bool operator==(const StreamSample&) const = default;
};

// Reads that go round and round a footprint, past the L1. Many in flight reach what the L2 can pass
// on; with few, the time of each is the mean of two latencies, by the share that is resident.
struct CachedReadSample {
  std::int64_t footprint_bytes = 0;
  std::int64_t bytes = 0;  // read in all rounds
  std::int64_t threads_per_sm = 0;
  std::int64_t accesses_in_flight = 0;
  Times seconds;

  std::int64_t in_flight_bytes_per_sm() const { return 16 * threads_per_sm * accesses_in_flight; }
  bool operator==(const CachedReadSample&) const = default;
};

// Steps of which each waits for the one before: one thread, but for the shuffle and the matrix
// instruction (a warp) and the barrier (a block).
enum class Chain { hbm, l2, shared, atomic, shuffle, barrier, arithmetic, matrix };
struct ChainSample {
  Chain chain = Chain::hbm;
  std::string dtype;                 // of a matrix chain
  std::int64_t footprint_bytes = 0;  // of a chase through device memory
  std::int64_t threads = 1;          // of the block
  std::int64_t steps = 0;
  double clocks = 0, seconds = 0;  // of the whole chain, by the SM's own clock and the global timer

  bool operator==(const ChainSample&) const = default;
};

// Operations without dependences on every SM. The unit of `operations` is that of the row: warp
// instructions (issue, integer, special), bytes (shared), floating-point operations.
enum class Rate { issue, integer, special, shared, f32_fused, f32_unfused, matrix };
struct RateSample {
  Rate rate = Rate::issue;
  std::string dtype;  // of matrix operations
  std::int64_t warps_per_sm = 0;
  double operations = 0;  // on the whole device
  double clock_hz = 0;    // of an SM meanwhile
  Times seconds;

  bool operator==(const RateSample&) const = default;
};

// An empty kernel between two events, behind a flush of the L2 or a held stream; or `launches` of
// them back to back in a graph, seconds of one.
enum class Launch { cold, warm, graph };
struct LaunchSample {
  Launch launch = Launch::cold;
  std::int64_t blocks = 0;
  std::int64_t launches = 1;
  Times seconds;

  bool operator==(const LaunchSample&) const = default;
};

struct Samples {
  DeviceFacts facts;
  std::vector<StreamSample> streams;
  std::vector<CachedReadSample> cached_reads;
  std::vector<ChainSample> chains;
  std::vector<RateSample> rates;
  std::vector<LaunchSample> launches;

  bool operator==(const Samples&) const = default;
};

std::string_view to_string(Access access);
std::string_view to_string(Chain chain);
std::string_view to_string(Rate rate);
std::string_view to_string(Launch launch);

// The samples as JSON, one a line, and back. Numbers keep every bit. Reading throws ConfigError
// with file and JSON pointer for a missing or unknown key and for sizes and times that are not
// positive.
std::string to_json(const Samples& samples);
Samples read_samples(const std::filesystem::path& path);

}  // namespace indexpool::calibration
