// Where inside their intervals the constants of a device are taken. Internal to the layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

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
double fill_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                    Corner corner);
double shared_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double matrix_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double f32_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double issue_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double integer_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double special_seconds(const Work& work, const DeviceSpec& device, Corner corner);
double latency_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                       Corner corner);

// How resources overlap at a corner: perfectly at the fastest, badly at the slowest.
double overlap_at(std::span<const double> times, Corner corner);

// The grid in waves: `full` ones of `resident` blocks on every SM, then `rest` blocks on the
// busiest SM. A grid that was not declared is one full wave of one block.
struct Waves {
  double full = 0, resident = 1, rest = 0;
  double count() const { return full + (rest > 0 ? 1 : 0); }
};
Waves waves_of(const Work& work, const DeviceSpec& device);
// What a block takes of its SM alone, by resource: shared, matrix, f32, issue, integer, special.
std::array<double, 6> block_seconds(const Work& work, const DeviceSpec& device, Corner corner);
// Of all waves, everything on the SMs overlapped.
double sm_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                  Corner corner);
double chain_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                     Corner corner);
std::string matrix_units(const std::string& dtype, const DeviceSpec& device);

// smooth_max() of an array.
double overlap_seconds(std::span<const double> times, double order);

}  // namespace indexpool
