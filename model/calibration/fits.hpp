// From repeated measurements to constants with intervals. Deterministic.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "indexpool/model/calibration/samples.hpp"
#include "indexpool/model/config.hpp"

namespace indexpool::calibration {

struct Estimate {
  double value = 0, low = 0, high = 0;  // low <= value <= high
};

// Median, 10th and 90th percentile, between neighbours by interpolation. ConfigError naming `what`
// when there are no values.
Estimate spread_of(std::vector<double> values, std::string_view what);

// Least squares of y = a + value * x; low and high from pairs of neighbours. ConfigError naming
// `what` with fewer than two different x, or when y does not grow.
Estimate slope_of(std::vector<std::pair<double, double>> points, std::string_view what);

// The latency with which rate_in_flight(read rate, bytes in flight, device) comes nearest to the
// read streams (least squares of the logarithm); low and high: 10th and 90th percentile of the
// latencies that single streams below 85 % of the read rate give. ConfigError when none is below.
Estimate loaded_latency(std::span<const StreamSample> streams, const DeviceSpec& device);

// Logistic of l2_resident_share() from rounds over footprints by so few threads that each read
// waits for nothing but its latency: the time of a byte is a + b * (1 - resident share), and a, b,
// midpoint and exponent are fitted (least squares of the relative error). low and high: where the
// fit is worse by what a 90 % interval of one constant allows, errors taken as at least 1 %.
// ConfigError without footprints on both sides of the capacity, or when what misses is no slower.
struct RollOff {
  Estimate midpoint_bytes, exponent;
};
RollOff l2_roll_off(std::span<const CachedReadSample> reads, Bytes capacity);

}  // namespace indexpool::calibration
