// Device memory and the L2.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/calibration/constant_maker.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;
// A stream with this much in flight is short of nothing: about four times the product of rate and
// loaded latency (11 KB an SM on an A100, 17 on an H200).
constexpr std::int64_t ample_in_flight_per_sm = 64 << 10;

}  // namespace

Constant ConstantMaker::stream(Access access) const {
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

void ConstantMaker::memory(const std::optional<DeviceSpec>& base) {
  if (base) {
    device_.hbm_peak_bytes_per_s = base->hbm_peak_bytes_per_s;
    device_.link_bytes_per_s = base->link_bytes_per_s;
    device_.link_latency_s = base->link_latency_s;
  } else {
    const double peak = samples_.facts.memory_peak_bytes_per_s;
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

void ConstantMaker::cache() {
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

}  // namespace indexpool::calibration
