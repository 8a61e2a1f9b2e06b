// What caches do to reads: the rate of every SM reading the same bytes again and again, and the
// time of one load that waits for the one before.
#include <cmath>

#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

constexpr double steepness = 8;  // of caches that roll off over a few tenths of their size

double held(double footprint, double capacity) {
  return 1 / (1 + std::pow(footprint / capacity, steepness));
}

namespace rate {
enum : std::size_t { l1_bytes, l1_share, l2_share, pass };

// Each SM reads the whole footprint: beyond the L1 all of them ask the L2 for the same lines.
KernelTime time_of(const KernelShape& any, const DeviceSpec& device, std::span<const double> c) {
  const double bytes = static_cast<double>(std::get<StreamShape>(any).read.value);
  const double sms = static_cast<double>(device.sm_count);
  const double in_l1 = held(bytes, c[l1_bytes]);
  const double l1_rate =
      device.shared_bytes_per_clock_per_sm.value * device.sm_clock_hz.value * sms * c[l1_share];
  KernelTime out;
  out[Resource::fixed] = c[pass] / sms;
  out[Resource::serial] = bytes / l1_rate;
  out[Resource::l2] = bytes * (1 - in_l1) / (device.l2_bytes_per_s.value * c[l2_share]);
  out.time = out[Resource::fixed] + overlapped(out[Resource::serial], out[Resource::l2]);
  return out;
}

constexpr FormConstant constants[] = {
    {"l1_bytes", 2e5, 3e4, 1e6, "of the L1 where half of the reads still hit"},
    {"l1_share", 1, 0.3, 1.05, "of 128 bytes a clock and SM"},
    {"l2_share", 0.9, 0.3, 1.15, "of the device's L2 read rate"},
    {"pass_s", 1e-8, 1e-10, 1e-5, "of starting over: the loop around the reads"}};
}  // namespace rate

namespace chase {
enum : std::size_t { l1_s, l1_bytes, near_s, near_bytes, far_s, far_bytes, hbm_s };

KernelTime time_of(const KernelShape& any, const DeviceSpec&, std::span<const double> c) {
  const double bytes = static_cast<double>(std::get<ChaseShape>(any).footprint.value);
  const double in_l1 = held(bytes, c[l1_bytes]), in_near = held(bytes, c[near_bytes]);
  const double in_l2 = held(bytes, c[far_bytes]);
  const double beyond_near = in_l2 * c[far_s] + (1 - in_l2) * c[hbm_s];
  const double beyond_l1 = in_near * c[near_s] + (1 - in_near) * beyond_near;
  KernelTime out;
  out.time = in_l1 * c[l1_s] + (1 - in_l1) * beyond_l1;
  const Resource deepest = in_l1 > 0.5   ? Resource::serial
                           : in_l2 > 0.5 ? Resource::l2
                                         : Resource::hbm;
  out[deepest] = out.time;
  return out;
}

constexpr FormConstant constants[] = {
    {"l1_s", 2.3e-8, 1e-9, 1e-6, "a load that the L1 answers"},
    {"l1_bytes", 1.7e5, 3e4, 1e6, "of the L1 where half of the loads still hit"},
    {"near_l2_s", 1.5e-7, 1e-8, 1e-6, "a load that the near half of the L2 answers"},
    {"near_l2_bytes", 2e7, 1e6, 1e8, "of the near half"},
    {"far_l2_s", 2.8e-7, 1e-8, 1e-6, "a load that the far half answers"},
    {"far_l2_bytes", 3.9e7, 5e6, 2e8, "of both halves"},
    {"hbm_s", 3.7e-7, 1e-8, 5e-6, "a load that goes to memory"}};
}  // namespace chase

}  // namespace

const KernelForm cached_read_form = {
    "cached_read",
    "pass + overlap(bytes / L1 rate, bytes beyond the L1 / L2 rate)",
    {"pass_s / SMs", "", "bytes x (1 - share in L1) / (L2 rate x l2_share)", "",
     "bytes / (SMs x 128 B a clock x l1_share)"},
    rate::constants,
    rate::time_of};

const KernelForm pointer_chase_form = {
    "pointer_chase",
    "latency of L1, near L2, far L2 and memory, by the share of the footprint that each holds",
    {"", "mean latency, most loads from memory", "mean latency, most loads from the L2", "",
     "mean latency, most loads from the L1"},
    chase::constants,
    chase::time_of};

}  // namespace indexpool
