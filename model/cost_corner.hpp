// Where inside their intervals the constants of a device are taken. Internal to the layer.
#pragma once

#include <cstdint>
#include <span>

#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool {

enum class Corner { expected, fastest, slowest };

// Of a constant of which more makes the work faster (a rate, a capacity).
inline double rate_at(const Constant& rate, Corner corner) {
  if (corner == Corner::expected) return rate.value;
  return corner == Corner::fastest ? rate.high : rate.low;
}

// Of a constant of which more makes the work slower (a latency).
inline double delay_at(const Constant& delay, Corner corner) {
  if (corner == Corner::expected) return delay.value;
  return corner == Corner::fastest ? delay.low : delay.high;
}

double resident_share_at(Bytes footprint, const DeviceSpec& device, Corner corner);
BytesPerSecond hbm_rate_at(double read_bytes, double write_bytes, const DeviceSpec& device,
                           Corner corner);
BytesPerSecond rate_in_flight_at(BytesPerSecond peak, double in_flight_bytes,
                                 const DeviceSpec& device, Corner corner);

// Each term of predict() at a corner, in seconds; CostTerm has the same with words.
double launch_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                      Corner corner);
double hbm_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                   Corner corner);
double l2_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double shared_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double matrix_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double f32_seconds(const Work& work, const DeviceSpec& device, Corner corner);

// smooth_max() of an array.
double overlap_seconds(std::span<const double> times, double order);

}  // namespace indexpool
