#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr double sector_bytes = 32;      // unit of a global access, CUDA C++ Programming Guide
constexpr double wavefront_bytes = 128;  // 32 banks of 4 bytes, CUDA C++ Programming Guide
// Two sectors a clock between the L2 and one SM. Assumed: no source gives it for these devices; it
// only decides the time of grids that leave SMs idle.
constexpr double l2_port_bytes_per_clock = 64;

std::string amount(double value, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, prefixes[prefix], unit);
}

// The term whose time at each corner is seconds(corner).
template <class SecondsAt>
CostTerm term(const char* name, SecondsAt seconds, std::string formula, std::string source) {
  return {name,
          Seconds(seconds(Corner::expected)),
          Seconds(seconds(Corner::fastest)),
          Seconds(seconds(Corner::slowest)),
          std::move(formula),
          std::move(source)};
}

CostTerm nothing(const char* name) { return {name, {}, {}, {}, "nothing to do", ""}; }

// Share of the SMs' throughput that the grid can use. Blocks that saturate their SM alone finish
// after ceil(blocks / SMs) turns. Slowest: blocks bound by latency take a turn each whether or not
// their neighbours' slots are empty.
double busy_share(const Work& work, const DeviceSpec& device, Corner corner) {
  if (work.blocks == 0) return 1;  // a grid that was not declared
  const std::int64_t slots_per_sm =
      corner == Corner::slowest ? std::max<std::int64_t>(1, work.blocks_per_sm) : 1;
  return wave_efficiency(work.blocks, device.sm_count * slots_per_sm);
}

std::int64_t busy_sms(const Work& work, const DeviceSpec& device) {
  return work.blocks == 0 ? device.sm_count : std::min(work.blocks, device.sm_count);
}

// What warms the L2 saves.
double missing_share(const Work& work, const DeviceSpec& device, const CostOptions& options,
                     Corner corner) {
  if (!options.warm_l2) return 1;
  return 1 - resident_share_at(work.unique_read + work.unique_write, device, corner);
}

std::int64_t resident_blocks(const Work& work, const DeviceSpec& device) {
  const std::int64_t slots = device.sm_count * std::max<std::int64_t>(1, work.blocks_per_sm);
  return work.blocks == 0 ? slots : std::min(work.blocks, slots);
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

// An FP8 code is exactly an f16, so a device without FP8 units converts and multiplies as f16.
std::string matrix_units(const std::string& dtype, const DeviceSpec& device) {
  if (device.matrix_flop_per_s.contains(dtype)) return dtype;
  if (dtype == "e4m3" && device.matrix_flop_per_s.contains("f16")) return "f16";
  std::string known;
  for (const auto& [name, rate] : device.matrix_flop_per_s) {
    known += (known.empty() ? "" : ", ") + name;
  }
  throw ConfigError(fmt::format(
      "device {}: /matrix_flop_per_s: found no rate for {}, which the operation multiplies in "
      "(rates given: {}); choose another numeric mode or device, or add the rate",
      device.name, dtype, known.empty() ? "none" : known));
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

double shared_bytes(const Work& work) {
  const Traffic& traffic = work.traffic;
  return std::max(static_cast<double>(traffic.shared_wavefronts) * wavefront_bytes,
                  static_cast<double>((traffic.shared_load + traffic.shared_store).value));
}

double shared_rate(const Work& work, const DeviceSpec& device, Corner corner) {
  return rate_at(device.shared_bytes_per_clock_per_sm, corner) *
         rate_at(device.sm_clock_hz, corner) * static_cast<double>(device.sm_count) *
         busy_share(work, device, corner);
}

const Constant& matrix_peak(const Work& work, const DeviceSpec& device) {
  return device.matrix_flop_per_s.at(matrix_units(work.matrix_dtype, device));
}

}  // namespace

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

double shared_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  const double bytes = shared_bytes(work);
  return bytes == 0 ? 0 : bytes / shared_rate(work, device, corner);
}

double matrix_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  if (work.matrix_flop.value == 0) return 0;
  return work.matrix_flop.value /
         (rate_at(matrix_peak(work, device), corner) * busy_share(work, device, corner));
}

double f32_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  if (work.f32_flop.value == 0) return 0;
  return work.f32_flop.value /
         (rate_at(device.f32_flop_per_s, corner) * busy_share(work, device, corner));
}

CostTerm launch_term(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  require(work.launches >= 0, "launches are negative");
  const Constant& launch = options.graph_launch ? device.graph_launch_s : device.launch_s;
  return term(
      "launch", [&](Corner corner) { return launch_seconds(work, device, options, corner); },
      fmt::format("{} x {:.3g} us{}", work.launches, launch.value * 1e6,
                  options.graph_launch ? " in a graph" : ""),
      launch.source);
}

CostTerm serial_term(const Work& work) {
  const double seconds = work.serial_latency.value;
  require(seconds >= 0, "a serial latency is negative");
  if (seconds == 0) return nothing("serial");
  return term(
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
  return term(
      "hbm", [&](Corner corner) { return hbm_seconds(work, device, options, corner); },
      fmt::format("{} / {}",
                  amount(static_cast<double>(hbm_bytes(work, device, options).value), "B"),
                  amount(stream_rate(beyond, work, device, Corner::expected).value, "B/s")),
      device.hbm_read_bytes_per_s.source);
}

CostTerm l2_term(const Work& work, const DeviceSpec& device) {
  const double bytes = l2_bytes(work);
  if (bytes == 0) return nothing("l2");
  return term(
      "l2", [&](Corner corner) { return l2_seconds(work, device, corner); },
      fmt::format("{} / {}", amount(bytes, "B"),
                  amount(l2_rate(work, device, Corner::expected), "B/s")),
      device.l2_bytes_per_s.source);
}

CostTerm shared_term(const Work& work, const DeviceSpec& device) {
  const double bytes = shared_bytes(work);
  if (bytes == 0) return nothing("shared");
  return term(
      "shared", [&](Corner corner) { return shared_seconds(work, device, corner); },
      fmt::format("{} / {}", amount(bytes, "B"),
                  amount(shared_rate(work, device, Corner::expected), "B/s")),
      device.shared_bytes_per_clock_per_sm.source);
}

CostTerm matrix_term(const Work& work, const DeviceSpec& device) {
  if (work.matrix_flop.value == 0) return nothing("matrix");
  require(work.matrix_flop.value > 0, "matrix operations are negative");
  const std::string units = matrix_units(work.matrix_dtype, device);
  const Constant& peak = device.matrix_flop_per_s.at(units);
  const double rate = peak.value * busy_share(work, device, Corner::expected);
  return term(
      "matrix", [&](Corner corner) { return matrix_seconds(work, device, corner); },
      fmt::format("{} / {} in {}{}", amount(work.matrix_flop.value, "FLOP"), amount(rate, "FLOP/s"),
                  units, units == work.matrix_dtype ? "" : " (no " + work.matrix_dtype + " units)"),
      peak.source);
}

CostTerm f32_term(const Work& work, const DeviceSpec& device) {
  if (work.f32_flop.value == 0) return nothing("f32");
  require(work.f32_flop.value > 0, "f32 operations are negative");
  const double rate = device.f32_flop_per_s.value * busy_share(work, device, Corner::expected);
  return term(
      "f32", [&](Corner corner) { return f32_seconds(work, device, corner); },
      fmt::format("{} / {}", amount(work.f32_flop.value, "FLOP"), amount(rate, "FLOP/s")),
      device.f32_flop_per_s.source);
}

}  // namespace indexpool
