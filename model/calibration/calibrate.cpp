#include "indexpool/model/calibration/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/calibration/fits.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;
// A stream with this much in flight is short of nothing: several times what a full HBM needs at a
// loaded latency of 0.7 us (20 KB an SM on an A100, 25 on an H200).
constexpr std::int64_t ample_in_flight_per_sm = 64 << 10;

// Four digits say more than a measurement repeats to.
double rounded(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  return std::stod(fmt::format("{:.3e}", std::round(value / unit) * unit));
}

class Maker {
 public:
  Maker(const Samples& samples, DeviceSpec& device) : samples_(samples), device_(device) {}

  void clocks();
  void memory(const std::optional<DeviceSpec>& base);
  void cache();
  void streaming_multiprocessors();
  void matrix();
  void latencies();
  void launches();

 private:
  Constant measured(Estimate estimate, const std::string& how) const {
    return {rounded(estimate.value), rounded(estimate.low), rounded(estimate.high),
            fmt::format("own measurement, {}: {}", samples_.facts.date, how),
            ConstantKind::measured};
  }
  Constant stream(Access access) const;
  std::vector<const RateSample*> rates(Rate rate, const std::string& dtype = "") const;
  Estimate best_rate(const std::vector<const RateSample*>& rates, double per) const;
  double per_clock_and_sm(const RateSample& sample) const {
    return sample.clock_hz * static_cast<double>(samples_.facts.sm_count);
  }
  Estimate clocked(Rate rate) const;
  Estimate step(Chain chain, const std::string& dtype = "") const;
  std::vector<std::string> dtypes_of_matrix() const;

  const Samples& samples_;
  DeviceSpec& device_;
};

// Some devices lower their clock while matrix instructions run (an H200 from 1.98 to 1.8 GHz).
void Maker::clocks() {
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

Constant Maker::stream(Access access) const {
  std::vector<double> rates;
  for (const StreamSample& sample : samples_.streams) {
    if (sample.access != access || sample.bytes < 3 * gib / 2 ||
        sample.in_flight_bytes_per_sm() < ample_in_flight_per_sm) {
      continue;
    }
    rates.push_back(static_cast<double>(sample.bytes) / sample.seconds.median);
  }
  const std::string name(to_string(access));
  const Estimate estimate = spread_of(
      rates, fmt::format("a {} of at least 1.5 GiB with 64 KiB in flight on each SM", name));
  return measured(estimate,
                  fmt::format("grid-stride {} by 16-byte accesses, median of {} footprints and "
                              "launch shapes; low and high: 10th and 90th percentile",
                              name, rates.size()));
}

void Maker::memory(const std::optional<DeviceSpec>& base) {
  if (base) {
    device_.hbm_peak_bytes_per_s = base->hbm_peak_bytes_per_s;
    device_.link_bytes_per_s = base->link_bytes_per_s;
    device_.link_latency_s = base->link_latency_s;
  } else {
    const double peak = rounded(samples_.facts.memory_peak_bytes_per_s);
    device_.hbm_peak_bytes_per_s = {peak, peak, peak,
                                    "memory clock times bus width, as the driver tells them",
                                    ConstantKind::published};
  }
  device_.hbm_read_bytes_per_s = stream(Access::read);
  device_.hbm_write_bytes_per_s = stream(Access::write);
  device_.hbm_copy_bytes_per_s = stream(Access::copy);
  for (const Constant* rate : {&device_.hbm_read_bytes_per_s, &device_.hbm_write_bytes_per_s,
                               &device_.hbm_copy_bytes_per_s}) {
    if (rate->high <= device_.hbm_peak_bytes_per_s.high) continue;
    throw ConfigError(fmt::format(
        "a stream reaches {:.4g} B/s, above the peak of {:.4g} ({}): this is another device, or "
        "its L2 answered; give the right one with --base",
        rate->high, device_.hbm_peak_bytes_per_s.high, device_.hbm_peak_bytes_per_s.source));
  }
  device_.hbm_loaded_latency_s =
      measured(loaded_latency(samples_.streams, device_),
               "bytes in flight over rate of read streams with 128 to 2048 threads an SM and 1 to "
               "8 loads of 16 bytes a thread; low and high: of single streams");
}

void Maker::cache() {
  std::vector<double> rates;
  std::vector<CachedReadSample> waiting;
  for (const CachedReadSample& read : samples_.cached_reads) {
    if (read.in_flight_bytes_per_sm() < ample_in_flight_per_sm) {
      waiting.push_back(read);
    } else if (2 * read.footprint_bytes <= device_.l2_capacity.value) {
      rates.push_back(static_cast<double>(read.bytes) / read.seconds.median);
    }
  }
  device_.l2_bytes_per_s = measured(
      spread_of(rates, "rounds over up to half of the L2"),
      fmt::format("rounds over {} footprints of up to half of the L2, past the L1", rates.size()));
  const RollOff roll_off = l2_roll_off(waiting, device_.l2_capacity);
  const std::string how = fmt::format(
      "logistic through the latencies in rounds over {} footprints by few threads", waiting.size());
  device_.l2_residency_bytes = measured(roll_off.midpoint_bytes, how);
  device_.l2_residency_exponent = measured(roll_off.exponent, how);
}

std::vector<const RateSample*> Maker::rates(Rate rate, const std::string& dtype) const {
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
Estimate Maker::best_rate(const std::vector<const RateSample*>& rates, double per) const {
  Estimate estimate;
  for (const RateSample* sample : rates) {
    const double rate = sample->operations / sample->seconds.median / per;
    estimate.value = std::max(estimate.value, rate);
    estimate.low = estimate.low == 0 ? rate : std::min(estimate.low, rate);
    estimate.high = std::max(estimate.high, sample->operations / sample->seconds.low / per);
  }
  return estimate;
}

Estimate Maker::clocked(Rate rate) const {
  Estimate estimate;
  for (const RateSample* sample : rates(rate)) {
    const Estimate one = best_rate({sample}, per_clock_and_sm(*sample));
    estimate.value = std::max(estimate.value, one.value);
    estimate.low = estimate.low == 0 ? one.low : std::min(estimate.low, one.low);
    estimate.high = std::max(estimate.high, one.high);
  }
  return estimate;
}

void Maker::streaming_multiprocessors() {
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

std::vector<std::string> Maker::dtypes_of_matrix() const {
  std::vector<std::string> dtypes;
  for (const RateSample& sample : samples_.rates) {
    if (sample.rate != Rate::matrix) continue;
    if (std::find(dtypes.begin(), dtypes.end(), sample.dtype) == dtypes.end()) {
      dtypes.push_back(sample.dtype);
    }
  }
  return dtypes;
}

void Maker::matrix() {
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

Estimate Maker::step(Chain chain, const std::string& dtype) const {
  std::vector<double> seconds;
  for (const ChainSample& sample : samples_.chains) {
    if (sample.chain == chain && sample.dtype == dtype) {
      seconds.push_back(sample.seconds / static_cast<double>(sample.steps));
    }
  }
  return spread_of(std::move(seconds), fmt::format("the chain {}{}{}", to_string(chain),
                                                   dtype.empty() ? "" : " of ", dtype));
}

void Maker::latencies() {
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

void Maker::launches() {
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

}  // namespace

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
  Maker maker(samples, device);
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
