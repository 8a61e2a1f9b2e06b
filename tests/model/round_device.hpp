// A device whose times can be worked out by hand.
#pragma once

#include <cmath>

#include "indexpool/model/config.hpp"

namespace indexpool {

// A device of round numbers. Every rate may be a quarter less or more, every delay likewise.
inline Constant about(double value) { return {value, 0.75 * value, 1.25 * value, "round numbers"}; }

inline DeviceSpec round_device() {
  DeviceSpec device;
  device.name = "round";
  device.sm_count = 10;
  device.warps_per_sm = 64;
  device.l2_capacity = Bytes(1'000'000);
  device.sm_clock_hz = about(1e9);
  device.hbm_peak_bytes_per_s = about(2e12);
  device.hbm_read_bytes_per_s = about(1e12);
  device.hbm_write_bytes_per_s = about(5e11);
  device.hbm_copy_bytes_per_s = about(8e11);
  device.hbm_loaded_latency_s = about(1e-6);
  device.l2_bytes_per_s = about(4e12);
  device.l2_residency_bytes = about(1e6);
  device.l2_residency_exponent = about(4);
  device.shared_bytes_per_clock_per_sm = about(100);
  device.launch_s = about(2e-6);
  device.graph_launch_s = about(1e-6);
  device.matrix_flop_per_s = {{"bf16", about(1e14)}, {"f16", about(2e14)}};
  device.f32_flop_per_s = about(1e13);
  device.issue_per_clock_per_sm = about(4);
  device.integer_per_clock_per_sm = about(2);
  device.special_per_clock_per_sm = about(0.5);
  device.hbm_latency_s = about(8e-7);
  device.l2_latency_s = about(2e-7);
  device.shared_latency_s = about(3e-8);
  device.atomic_latency_s = about(5e-8);
  device.shuffle_latency_s = about(2.5e-8);
  device.barrier_latency_s = about(4e-8);
  device.arithmetic_latency_s = about(4e-9);
  device.matrix_latency_s = {{"bf16", about(3e-8)}, {"f16", about(3.5e-8)}};
  return device;
}

inline double at_quarter(double value) { return 0.75 * value; }

// Relative tolerance of comparisons with numbers worked out by hand: rounding of a few operations.
inline constexpr double rounding = 1e-12;

#define EXPECT_SAME(actual, expected) \
  EXPECT_NEAR((actual), (expected), rounding* std::abs(expected))

}  // namespace indexpool
