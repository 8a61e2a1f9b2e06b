#include <algorithm>
#include <cmath>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// Order of the soft minimum of Little's law. Fitted to RRZE-HPC/gpu-benches 1038c5d, gpu-stream
// read on an A100 80 GB over occupancy: 3.5 % mean error, 3.9 % on the rows left out.
constexpr double in_flight_order = 3;

double logistic(double footprint, double midpoint, double exponent) {
  return 1 / (1 + std::pow(footprint / midpoint, exponent));
}

}  // namespace

// A steeper roll-off keeps more below the midpoint and less above it, so both ends of the exponent
// are tried.
double resident_share_at(Bytes footprint, const DeviceSpec& device, Corner corner) {
  const double bytes = static_cast<double>(footprint.value);
  const double midpoint = rate_at(device.l2_residency_bytes, corner);
  const Constant& exponent = device.l2_residency_exponent;
  const double expected = logistic(bytes, midpoint, exponent.value);
  if (corner == Corner::expected) return expected;
  const double low = logistic(bytes, midpoint, exponent.low);
  const double high = logistic(bytes, midpoint, exponent.high);
  return corner == Corner::fastest ? std::max({expected, low, high})
                                   : std::min({expected, low, high});
}

BytesPerSecond hbm_rate_at(double read_bytes, double write_bytes, const DeviceSpec& device,
                           Corner corner) {
  const double r = read_bytes, w = write_bytes;
  const double pure_read = rate_at(device.hbm_read_bytes_per_s, corner);
  const double pure_write = rate_at(device.hbm_write_bytes_per_s, corner);
  const double copy = rate_at(device.hbm_copy_bytes_per_s, corner);
  if (r + w == 0) return BytesPerSecond(pure_read);
  // The paired part streams at the copy rate, what is left over at its own.
  const double time =
      r >= w ? 2 * w / copy + (r - w) / pure_read : 2 * r / copy + (w - r) / pure_write;
  return BytesPerSecond((r + w) / time);
}

BytesPerSecond rate_in_flight_at(BytesPerSecond peak, double in_flight_bytes,
                                 const DeviceSpec& device, Corner corner) {
  const double latency = delay_at(device.hbm_loaded_latency_s, corner);
  const double sustained = in_flight_bytes / latency;
  if (sustained <= 0) return BytesPerSecond(0);
  // peak / (1 + (peak / sustained)^p)^(1/p): the same soft minimum without overflow.
  const double ratio = peak.value / sustained;
  static_assert(in_flight_order == 3);
  return BytesPerSecond(peak.value / std::cbrt(1 + ratio * ratio * ratio));
}

double l2_resident_share(Bytes footprint, const DeviceSpec& device) {
  require(footprint.value >= 0, "a footprint is negative");
  return resident_share_at(footprint, device, Corner::expected);
}

BytesPerSecond hbm_rate(Bytes read, Bytes write, const DeviceSpec& device) {
  require(read.value >= 0 && write.value >= 0, "bytes are negative");
  return hbm_rate_at(static_cast<double>(read.value), static_cast<double>(write.value), device,
                     Corner::expected);
}

BytesPerSecond rate_in_flight(BytesPerSecond peak, Bytes in_flight, const DeviceSpec& device) {
  require(in_flight.value >= 0, "bytes in flight are negative");
  return rate_in_flight_at(peak, static_cast<double>(in_flight.value), device, Corner::expected);
}

double wave_efficiency(std::int64_t blocks, std::int64_t resident_blocks) {
  require(blocks > 0 && resident_blocks > 0, "waves of no blocks");
  const std::int64_t waves = (blocks - 1) / resident_blocks + 1;
  return static_cast<double>(blocks) /
         (static_cast<double>(waves) * static_cast<double>(resident_blocks));
}

}  // namespace indexpool
