// Kernels that pass over bytes once.
#include <algorithm>
#include <cmath>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

struct StreamConstants {
  double flight_bytes_per_thread, hbm_share, l2_share, footprint_factor;
};

std::int64_t resident_threads(const StreamShape& shape, const DeviceSpec& device) {
  if (shape.blocks == 0) return device.sm_count * device.warps_per_sm * 32;
  const std::int64_t slots = device.sm_count * std::max<std::int64_t>(1, shape.blocks_per_sm);
  return std::min(shape.blocks, slots) * shape.threads_per_block;
}

void add_memory(KernelTime& out, const StreamShape& shape, const DeviceSpec& device,
                const StreamConstants& constants) {
  const double bytes = static_cast<double>((shape.read + shape.written).value);
  const Bytes footprint(std::llround(bytes * constants.footprint_factor));
  const double resident =
      shape.repeated ? resident_share_at(footprint, device, Corner::expected) : 0;
  const BytesPerSecond peak(hbm_rate(shape.read, shape.written, device).value *
                            constants.hbm_share);
  const double flight =
      static_cast<double>(resident_threads(shape, device)) * constants.flight_bytes_per_thread;
  out[Resource::hbm] =
      bytes * (1 - resident) / rate_in_flight_at(peak, flight, device, Corner::expected).value;
  // Bytes that pass once are held up by HBM: how fast they would leave the L2 no row can tell.
  const double l2_share = shape.repeated ? constants.l2_share : 1;
  out[Resource::l2] = bytes / (device.l2_bytes_per_s.value * l2_share);
}

double launch_seconds(const StreamShape& shape, const DeviceSpec& device) {
  if (shape.timed_from == TimedFrom::stream) return device.launch_s.value;
  return shape.timed_from == TimedFrom::graph ? device.graph_launch_s.value : 0;
}

KernelTime stream_time(const KernelShape& any, const DeviceSpec& device,
                       std::span<const double> c) {
  const StreamShape& shape = std::get<StreamShape>(any);
  KernelTime out;
  add_memory(out, shape, device, {c[0], c[1], c[2], c[3]});
  const bool steady = shape.timed_from == TimedFrom::steady;
  out[Resource::fixed] = launch_seconds(shape, device) + (steady ? 0 : c[4]);
  out.time = out[Resource::fixed] + overlapped(out[Resource::hbm], out[Resource::l2]);
  return out;
}

KernelTime host_timed_time(const KernelShape& any, const DeviceSpec& device,
                           std::span<const double> c) {
  const StreamShape& shape = std::get<StreamShape>(any);
  KernelTime out;
  // Large grids with many bytes in flight: what one thread keeps there does not show.
  add_memory(out, shape, device, {1e3, c[0], c[1], c[2]});
  const double on_device = c[3] + overlapped(out[Resource::hbm], out[Resource::l2]);
  out[Resource::fixed] = std::max(c[3], c[4] - on_device);
  out.time = overlapped(c[4], on_device);
  return out;
}

constexpr FormConstant stream_constants[] = {
    {"in_flight_per_thread_bytes", 8, 1, 512, "loads, or stores, a thread keeps in flight"},
    {"hbm_share", 1, 0.3, 1.15, "of the device's rate for this mix of reads and writes"},
    {"l2_share", 0.9, 0.2, 1.15, "of the device's L2 read rate"},
    {"l2_footprint_share", 1, 0.7, 1.6,
     "of the L2 that a byte takes: above 1 where both partitions keep a copy"},
    {"fixed_s", 1e-7, 1e-9, 1e-4, "on top of the launch: first and last block, a grid's barrier"}};

constexpr FormConstant host_timed_constants[] = {
    {"hbm_share", 0.95, 0.3, 1.15, "of the device's rate for this mix of reads and writes"},
    {"l2_share", 0.9, 0.2, 1.15, "of the device's L2 read rate"},
    {"l2_footprint_share", 1, 0.7, 1.6,
     "of the L2 that a byte takes: above 1 where both partitions keep a copy"},
    {"overhead_s", 15e-6, 1e-7, 1e-3, "between the events, beyond the kernel's bytes"},
    {"host_floor_s", 27e-6, 1e-7, 1e-3, "the host's time of a call: shorter kernels hide in it"}};

}  // namespace

const KernelForm stream_form = {
    "stream",
    "launch + fixed + overlap(bytes beyond L2 / HBM rate in flight, bytes / L2 rate)",
    {"launch as the time was taken + fixed_s",
     "bytes x (1 - share resident in L2) / soft minimum of HBM rate of the mix x hbm_share and "
     "threads x in_flight_per_thread_bytes / loaded latency",
     "bytes / (L2 rate x l2_share)", "", ""},
    stream_constants,
    stream_time};

const KernelForm host_timed_form = {
    "host_timed",
    "overlap(host floor, overhead + overlap(bytes / HBM rate, bytes / L2 rate))",
    {"overhead_s, or what is left of host_floor_s",
     "bytes x (1 - share resident in L2) / (HBM rate of the mix x hbm_share)",
     "bytes / (L2 rate x l2_share)", "", ""},
    host_timed_constants,
    host_timed_time};

}  // namespace indexpool
