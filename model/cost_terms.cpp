#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/cost_text.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr double sector_bytes = 32;  // unit of a global access, CUDA C++ Programming Guide
// Two sectors a clock between the L2 and one SM. Assumed: no source gives it for these devices; it
// only decides the time of grids that leave SMs idle.
constexpr double l2_port_bytes_per_clock = 64;

std::int64_t active_blocks(const Work& work) { return work.blocks - work.idle_blocks; }

std::int64_t busy_sms(const Work& work, const DeviceSpec& device) {
  return work.blocks == 0 ? device.sm_count
                          : std::clamp<std::int64_t>(active_blocks(work), 1, device.sm_count);
}

// What warms the L2 saves.
double missing_share(const Work& work, const DeviceSpec& device, const CostOptions& options,
                     Corner corner) {
  if (!options.warm_l2) return 1;
  return 1 - resident_share_at(work.unique_read + work.unique_write, device, corner);
}

std::int64_t resident_blocks(const Work& work, const DeviceSpec& device) {
  const std::int64_t slots = device.sm_count * std::max<std::int64_t>(1, work.blocks_per_sm);
  return work.blocks == 0 ? slots : std::min(active_blocks(work), slots);
}

// Loads in flight on the whole device; 0 when the kernel does not say.
double loads_in_flight(const Work& work, const DeviceSpec& device) {
  return static_cast<double>(resident_blocks(work, device)) *
         static_cast<double>(work.in_flight_per_block.value);
}

// What the L2 has lost of the bytes that blocks read again, before they do.
Bytes lost_rereads(const Work& work, const DeviceSpec& device, Corner corner) {
  if (work.reread.value == 0) return Bytes();
  const Bytes between = work.reuse_per_block * resident_blocks(work, device);
  const double lost = 1 - resident_share_at(between, device, corner);
  return Bytes(std::llround(static_cast<double>(work.reread.value) * lost));
}

// Bytes that the L2 passes on.
struct HbmBytes {
  double read = 0, write = 0;
};
HbmBytes beyond_l2(const Work& work, const DeviceSpec& device, const CostOptions& options,
                   Corner corner) {
  const double missing = missing_share(work, device, options, corner);
  return {static_cast<double>(work.unique_read.value) * missing +
              static_cast<double>(lost_rereads(work, device, corner).value),
          static_cast<double>(work.unique_write.value) * missing};
}

// Loads in flight limit the reads; the writes ride along in proportion.
BytesPerSecond stream_rate(const HbmBytes& bytes, const Work& work, const DeviceSpec& device,
                           Corner corner) {
  const BytesPerSecond rate = hbm_rate_at(bytes.read, bytes.write, device, corner);
  const double loads = loads_in_flight(work, device);
  if (loads == 0 || bytes.read == 0) return rate;
  return rate_in_flight_at(rate, loads * ((bytes.read + bytes.write) / bytes.read), device, corner);
}

double total_bytes(const Work& work) {
  return static_cast<double>((work.unique_read + work.unique_write).value);
}

double l2_bytes(const Work& work) {
  const Traffic& traffic = work.traffic;
  const double sectors = static_cast<double>(traffic.load_sectors + traffic.store_sectors);
  return std::max({sectors * sector_bytes,
                   static_cast<double>((traffic.global_load + traffic.global_store).value),
                   total_bytes(work)});
}

// Slowest: each SM has its share of the L2 and no more.
double l2_rate(const Work& work, const DeviceSpec& device, Corner corner) {
  const double busy = static_cast<double>(busy_sms(work, device));
  const double share = corner == Corner::slowest ? busy / static_cast<double>(device.sm_count) : 1;
  return std::min(share * rate_at(device.l2_bytes_per_s, corner),
                  busy * l2_port_bytes_per_clock * rate_at(device.sm_clock_hz, corner));
}

}  // namespace

std::string amount(double value, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, prefixes[prefix], unit);
}

double launch_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                      Corner corner) {
  const Constant& launch = options.graph_launch ? device.graph_launch_s : device.launch_s;
  return static_cast<double>(work.launches) * delay_at(launch, corner);
}

double hbm_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                   Corner corner) {
  if (total_bytes(work) == 0) return 0;
  const HbmBytes bytes = beyond_l2(work, device, options, corner);
  return (bytes.read + bytes.write) / stream_rate(bytes, work, device, corner).value;
}

double l2_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return l2_bytes(work) / l2_rate(work, device, corner);
}

double fill_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                    Corner corner) {
  const double loads = loads_in_flight(work, device);
  const double first = std::min(loads, static_cast<double>(work.unique_read.value));
  if (first <= 0) return 0;
  const double missing = missing_share(work, device, options, corner);
  const BytesPerSecond beyond = rate_in_flight_at(
      BytesPerSecond(rate_at(device.hbm_read_bytes_per_s, corner)), loads, device, corner);
  // What the L2 holds comes no later than what it has to fetch.
  const double held = std::max(beyond.value, l2_rate(work, device, corner));
  const double seconds = first * (missing / beyond.value + (1 - missing) / held);
  return std::min(seconds, sm_seconds(work, device, options, corner));  // nobody waits longer
}

CostTerm launch_term(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  require(work.launches >= 0, "launches are negative");
  const Constant& launch = options.graph_launch ? device.graph_launch_s : device.launch_s;
  return cost_term(
      "launch", [&](Corner corner) { return launch_seconds(work, device, options, corner); },
      fmt::format("{} x {:.3g} us{}", work.launches, launch.value * 1e6,
                  options.graph_launch ? " in a graph" : ""),
      launch.source);
}

CostTerm serial_term(const Work& work) {
  const double seconds = work.serial_latency.value;
  require(seconds >= 0, "a serial latency is negative");
  if (seconds == 0) return nothing("serial");
  return cost_term(
      "serial", [&](Corner) { return seconds; },
      fmt::format("{:.3g} us of dependent steps", seconds * 1e6), "declared by the kernel");
}

Bytes hbm_bytes(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  const Bytes again = lost_rereads(work, device, Corner::expected);
  const double total = static_cast<double>((work.unique_read + work.unique_write).value);
  if (!options.warm_l2) return work.unique_read + work.unique_write + again;
  return Bytes(std::llround(total * missing_share(work, device, options, Corner::expected))) +
         again;
}

CostTerm hbm_term(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  require(work.unique_read.value >= 0 && work.unique_write.value >= 0, "bytes are negative");
  if (total_bytes(work) == 0) return nothing("hbm");
  const HbmBytes beyond = beyond_l2(work, device, options, Corner::expected);
  return cost_term(
      "hbm", [&](Corner corner) { return hbm_seconds(work, device, options, corner); },
      fmt::format("{} / {}",
                  amount(static_cast<double>(hbm_bytes(work, device, options).value), "B"),
                  amount(stream_rate(beyond, work, device, Corner::expected).value, "B/s")),
      device.hbm_read_bytes_per_s.source);
}

CostTerm l2_term(const Work& work, const DeviceSpec& device) {
  const double bytes = l2_bytes(work);
  if (bytes == 0) return nothing("l2");
  return cost_term(
      "l2", [&](Corner corner) { return l2_seconds(work, device, corner); },
      fmt::format("{} / {}", amount(bytes, "B"),
                  amount(l2_rate(work, device, Corner::expected), "B/s")),
      device.l2_bytes_per_s.source);
}

CostTerm fill_term(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  const auto seconds = [&](Corner corner) { return fill_seconds(work, device, options, corner); };
  if (seconds(Corner::slowest) == 0) return nothing("fill");
  return cost_term("fill", seconds,
                   fmt::format("{} of the first wave, not overlapped",
                               amount(std::min(loads_in_flight(work, device),
                                               static_cast<double>(work.unique_read.value)),
                                      "B")),
                   device.hbm_read_bytes_per_s.source);
}

}  // namespace indexpool
