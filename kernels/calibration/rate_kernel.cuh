// Throughput of operations that do not wait for each other, on every SM at once.
#pragma once

#include "indexpool/kernels/calibration/calibration_run.cuh"

namespace indexpool::kernels {

struct RateArgs {
  std::int64_t rounds;
  std::uint32_t seed, mask;  // operands the compiler must not know
  float factor, addend;
  std::uint64_t never;  // a value that no result has
  std::uint32_t* sink;
  LoopClock* clocks;  // of each block
};

constexpr int rate_block_threads = 128;  // a warp for each of an SM's four schedulers

// A body's constructor sets up independent operands, round() works on them, result() keeps the
// compiler from dropping it.
template <class Body>
__global__ __launch_bounds__(rate_block_threads) void rate_kernel(RateArgs args) {
  Body body(args);
  const LoopClock clock = timed_loop(args.rounds, [&] { body.round(); });
  if (threadIdx.x == 0) args.clocks[blockIdx.x] = clock;
  if (body.result() == args.never) *args.sink = 1;
}

struct RateShape {
  calibration::Rate rate;
  const char* dtype;
  void (*kernel)(RateArgs);
  double operations_per_warp;  // of a round, in the unit of calibration::RateSample
  std::int64_t rounds;         // for about a millisecond
  int least_compute_capability;
};

// Appends a sample with `warps_per_sm` warps, a multiple of four.
void measure_rate(CalibrationRun& run, const RateShape& shape, std::int64_t warps_per_sm);

}  // namespace indexpool::kernels
