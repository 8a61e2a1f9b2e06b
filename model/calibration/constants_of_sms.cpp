// Clock, throughput and latencies of the SMs.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/calibration/constant_maker.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {

// Some devices lower their clock while matrix instructions run (an H200 from 1.98 to 1.8 GHz).
void ConstantMaker::clocks() {
  std::vector<double> plain, all;
  for (const RateSample& sample : samples_.rates) {
    all.push_back(sample.clock_hz);
    if (sample.rate != Rate::matrix) plain.push_back(sample.clock_hz);
  }
  Estimate estimate = spread_of(plain, "rates of the SMs without matrix instructions");
  estimate.low = *std::min_element(all.begin(), all.end());
  estimate.high = *std::max_element(all.begin(), all.end());
  device_.sm_clock_hz =
      measured(estimate, fmt::format("an SM's clock against the global timer in {} throughput "
                                     "kernels; low and high: the least and the most, matrix "
                                     "instructions included",
                                     all.size()));
}

std::vector<const RateSample*> ConstantMaker::rates(Rate rate, const std::string& dtype) const {
  std::vector<const RateSample*> found;
  for (const RateSample& sample : samples_.rates) {
    if (sample.rate == rate && sample.dtype == dtype) found.push_back(&sample);
  }
  if (found.empty()) {
    throw ConfigError(fmt::format("no samples of the rate {}{}{}", to_string(rate),
                                  dtype.empty() ? "" : " of ", dtype));
  }
  return found;
}

// Operations a second over `per`: of the best occupancy, low of the worst.
Estimate ConstantMaker::best_rate(const std::vector<const RateSample*>& rates, double per) const {
  Estimate estimate;
  for (const RateSample* sample : rates) {
    const double rate = sample->operations / sample->seconds.median / per;
    estimate.value = std::max(estimate.value, rate);
    estimate.low = estimate.low == 0 ? rate : std::min(estimate.low, rate);
    estimate.high = std::max(estimate.high, sample->operations / sample->seconds.low / per);
  }
  return estimate;
}

Estimate ConstantMaker::clocked(Rate rate) const {
  Estimate estimate;
  for (const RateSample* sample : rates(rate)) {
    const Estimate one =
        best_rate({sample}, sample->clock_hz * static_cast<double>(samples_.facts.sm_count));
    estimate.value = std::max(estimate.value, one.value);
    estimate.low = estimate.low == 0 ? one.low : std::min(estimate.low, one.low);
    estimate.high = std::max(estimate.high, one.high);
  }
  return estimate;
}

void ConstantMaker::streaming_multiprocessors() {
  const char* occupancies = "at the best of several occupancies; low: at the worst";
  device_.issue_per_clock_per_sm =
      measured(clocked(Rate::issue),
               fmt::format("as many products as logic operations, independent, {}", occupancies));
  device_.integer_per_clock_per_sm = measured(
      clocked(Rate::integer), fmt::format("independent logic operations, {}", occupancies));
  device_.special_per_clock_per_sm =
      measured(clocked(Rate::special), fmt::format("independent exponentials, {}", occupancies));
  device_.shared_bytes_per_clock_per_sm =
      measured(clocked(Rate::shared),
               fmt::format("16-byte loads of shared memory without conflicts, {}", occupancies));
  Estimate f32 = best_rate(rates(Rate::f32_fused), 1);
  f32.low = std::min(f32.low, best_rate(rates(Rate::f32_unfused), 1).low);
  device_.f32_flop_per_s =
      measured(f32,
               "independent FMAs, counting two, at the best of several occupancies; low: "
               "products and sums that are not fused");
}

std::vector<std::string> ConstantMaker::dtypes_of_matrix() const {
  std::vector<std::string> dtypes;
  for (const RateSample& sample : samples_.rates) {
    if (sample.rate != Rate::matrix) continue;
    if (std::find(dtypes.begin(), dtypes.end(), sample.dtype) == dtypes.end()) {
      dtypes.push_back(sample.dtype);
    }
  }
  return dtypes;
}

void ConstantMaker::matrix() {
  for (const std::string& dtype : dtypes_of_matrix()) {
    const bool narrow = dtype == "i8" || dtype == "e4m3";
    device_.matrix_flop_per_s[dtype] =
        measured(best_rate(rates(Rate::matrix, dtype), 1),
                 fmt::format("mma.sync m16n8k{} with 8 accumulators a warp, at the best of 4 to 16 "
                             "warps an SM; low: at the worst",
                             narrow ? 32 : 16));
    device_.matrix_latency_s[dtype] = measured(
        step(Chain::matrix, dtype), "one warp's mma.sync on the accumulator of the one before");
  }
}

Estimate ConstantMaker::step(Chain chain, const std::string& dtype) const {
  std::vector<double> seconds;
  for (const ChainSample& sample : samples_.chains) {
    if (sample.chain == chain && sample.dtype == dtype) {
      seconds.push_back(sample.seconds / static_cast<double>(sample.steps));
    }
  }
  return spread_of(std::move(seconds), fmt::format("the chain {}{}{}", to_string(chain),
                                                   dtype.empty() ? "" : " of ", dtype));
}

void ConstantMaker::latencies() {
  const auto chained = [&](Chain chain, const char* how) {
    return measured(step(chain), fmt::format("{}; median, 10th and 90th percentile over SMs", how));
  };
  device_.hbm_latency_s =
      chained(Chain::hbm, "one thread follows random pointers over many times the L2");
  device_.l2_latency_s =
      chained(Chain::l2, "one thread follows random pointers inside a quarter of the L2");
  device_.shared_latency_s = chained(Chain::shared, "one thread follows pointers in shared memory");
  device_.atomic_latency_s =
      chained(Chain::atomic,
              "one thread's atomic additions in shared memory, each at the address "
              "that the one before returned");
  device_.shuffle_latency_s = chained(Chain::shuffle, "a warp's dependent shuffles");
  device_.barrier_latency_s = chained(Chain::barrier, "barriers of blocks of 256 to 1024 threads");
  device_.arithmetic_latency_s = chained(Chain::arithmetic, "dependent FMAs");
}

}  // namespace indexpool::calibration
