// What the micro-kernels share: the device under test, and its clocks read from inside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "indexpool/kernels/calibration/measure_device.hpp"
#include "indexpool/kernels/device_cuda.cuh"
#include "indexpool/model/calibration/samples.hpp"

namespace indexpool::kernels {

struct CalibrationRun {
  Target& target;
  const CalibrationOptions& options;
  calibration::Samples& samples;
  int compute_capability = 0;  // 90 for 9.0

  const calibration::DeviceFacts& facts() const { return samples.facts; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(target.context().stream); }
  int repeats() const { return options.quick ? 5 : 15; }
  calibration::Times timed(const std::function<void()>& body) const;  // by events, L2 as it is
};

// Each appends to run.samples.
void measure_streams(CalibrationRun& run);
void measure_cached_reads(CalibrationRun& run);
void measure_chains(CalibrationRun& run);
void measure_rates(CalibrationRun& run);
void measure_matrix_rates(CalibrationRun& run);
void measure_launches(CalibrationRun& run);
// Half a second of arithmetic: a device at rest lowers its clocks.
void warm_clocks(CalibrationRun& run);

// A buffer on the device, released with its scope.
class CalibrationBuffer {
 public:
  CalibrationBuffer(Target& target, const char* name, std::int64_t bytes)
      : target_(target), begin_(target.allocate(name, bytes, std::byte{0})) {}
  // A device that failed fails every call from then on: the first error is on its way already.
  ~CalibrationBuffer() {
    try {
      target_.release(begin_);
    } catch (const EnvironmentError&) {
    }
  }
  CalibrationBuffer(const CalibrationBuffer&) = delete;
  CalibrationBuffer& operator=(const CalibrationBuffer&) = delete;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(begin_);
  }
  std::byte* get() const { return begin_; }

 private:
  Target& target_;
  std::byte* begin_;
};

// The global timer (ticks of 32 ns to 1 us) beside the SM's clock: read before and after, as other
// warps may run in between.
struct Instant {
  std::int64_t clock_before, nanoseconds, clock_after;
};
__device__ inline Instant instant_now() {
  Instant now;
  now.clock_before = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;\n" : "=l"(now.nanoseconds));
  now.clock_after = clock64();
  return now;
}

// How long a thread saw its loop take.
struct LoopClock {
  Instant begin, end;
  std::uint64_t arrived;  // where a chase ended

  double clocks() const {
    return 0.5 * static_cast<double>(end.clock_before - begin.clock_before + end.clock_after -
                                     begin.clock_after);
  }
  double seconds() const { return static_cast<double>(end.nanoseconds - begin.nanoseconds) * 1e-9; }
  // Clocks that passed between readings of one instant: what clocks() may be off by.
  std::int64_t slack() const {
    return end.clock_after - end.clock_before + begin.clock_after - begin.clock_before;
  }
};

// Times `rounds` calls of body(), which the compiler cannot move past the clocks.
template <class Body>
__device__ __forceinline__ LoopClock timed_loop(std::int64_t rounds, Body body) {
  LoopClock clock{};
  clock.begin = instant_now();
#pragma unroll 1
  for (std::int64_t i = 0; i < rounds; ++i) body();
  clock.end = instant_now();
  return clock;
}

}  // namespace indexpool::kernels
