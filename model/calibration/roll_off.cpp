// Where an L2 lets go: midpoint and exponent of the logistic of model/cost.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/calibration/fits.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

constexpr double least_exponent = 2, most_exponent = 200;
constexpr double sector_bytes = 32;
// A run repeats to about this, however well the logistic fits.
constexpr double least_error = 0.01;
constexpr double interval_90 = 2.706;  // of chi squared with one degree of freedom

double log_squared(double ratio) { return std::log(ratio) * std::log(ratio); }

class Objective {
 public:
  Objective(std::span<const CachedReadSample> reads, const DeviceSpec& device)
      : reads_(reads), device_(device) {}

  double operator()(double midpoint, double exponent) {
    device_.l2_residency_bytes = {midpoint, midpoint, midpoint, "tried"};
    device_.l2_residency_exponent = {exponent, exponent, exponent, "tried"};
    double cost = 0;
    for (const CachedReadSample& read : reads_) {
      const double rounds =
          static_cast<double>(read.bytes) / static_cast<double>(read.footprint_bytes);
      cost += log_squared(round_seconds(read) * rounds / read.seconds.median);
    }
    return cost;
  }

 private:
  double round_seconds(const CachedReadSample& read) const {
    Work work;
    work.unique_read = work.traffic.global_load = Bytes(read.footprint_bytes);
    work.traffic.load_sectors = read.footprint_bytes / static_cast<std::int64_t>(sector_bytes);
    work.launches = 0;
    CostOptions warm;
    warm.warm_l2 = true;
    return predict_numbers(work, device_, warm).time.value;
  }

  std::span<const CachedReadSample> reads_;
  DeviceSpec device_;
};

struct Point {
  double midpoint = 0, exponent = 0, cost = 0;
};

// Logarithmic grids around the best point so far, each a third as wide as the one before.
constexpr int grid_half = 10, grids = 12;

Point least_on_grids(Objective& cost, Point best, double midpoint_width, double exponent_width) {
  for (int grid = 0; grid < grids; ++grid) {
    const Point centre = best;
    for (int i = -grid_half; i <= grid_half; ++i) {
      for (int j = -grid_half; j <= grid_half; ++j) {
        Point tried;
        tried.midpoint = centre.midpoint * std::exp(midpoint_width * i / grid_half);
        tried.exponent = std::clamp(centre.exponent * std::exp(exponent_width * j / grid_half),
                                    least_exponent, most_exponent);
        tried.cost = cost(tried.midpoint, tried.exponent);
        if (tried.cost < best.cost) best = tried;
      }
    }
    midpoint_width /= 3;
    exponent_width /= 3;
  }
  return best;
}

// The least cost with one constant held, over a grid of the other.
double profile(Objective& cost, const Point& best, double midpoint, double exponent,
               bool midpoint_held) {
  double least = cost(midpoint, exponent);
  for (int i = -30; i <= 30; ++i) {
    const double factor = std::exp(i * (midpoint_held ? 0.1 : 0.01));
    least =
        std::min(least, midpoint_held ? cost(midpoint, std::clamp(best.exponent * factor,
                                                                  least_exponent, most_exponent))
                                      : cost(best.midpoint * factor, exponent));
  }
  return least;
}

// Walks away from the best point until the profile passes `limit`.
double end_of_interval(Objective& cost, const Point& best, double limit, bool midpoint_held,
                       int direction) {
  const double step = std::exp(direction * (midpoint_held ? 0.005 : 0.05));
  double at = midpoint_held ? best.midpoint : best.exponent;
  for (int i = 0; i < 200; ++i) {
    const double next = at * step;
    if (!midpoint_held && (next < least_exponent || next > most_exponent)) break;
    const double least = midpoint_held ? profile(cost, best, next, best.exponent, midpoint_held)
                                       : profile(cost, best, best.midpoint, next, midpoint_held);
    if (least > limit) break;
    at = next;
  }
  return at;
}

}  // namespace

RollOff l2_roll_off(std::span<const CachedReadSample> reads, const DeviceSpec& device) {
  const double capacity = static_cast<double>(device.l2_capacity.value);
  const auto footprints = [&](double low, double high) {
    return std::count_if(reads.begin(), reads.end(), [&](const CachedReadSample& read) {
      const double share = static_cast<double>(read.footprint_bytes) / capacity;
      return share > low && share <= high;
    });
  };
  if (footprints(0, 0.75) < 2 || footprints(0.5, 1.5) < 4 || footprints(1.5, 1e9) < 2) {
    throw ConfigError(fmt::format(
        "the L2's roll-off needs footprints on both sides of its {:.4g} bytes: at least 2 up to "
        "0.75, 4 from 0.5 to 1.5 and 2 above 1.5 of it; found {}, {} and {}",
        capacity, footprints(0, 0.75), footprints(0.5, 1.5), footprints(1.5, 1e9)));
  }
  Objective cost(reads, device);
  Point best{capacity, 10, cost(capacity, 10)};
  best = least_on_grids(cost, best, std::log(2.5), std::log(12));
  const double freedom = static_cast<double>(std::max<std::size_t>(reads.size(), 3) - 2);
  const double variance = std::max(best.cost / freedom, least_error * least_error);
  const double limit = best.cost + interval_90 * variance;
  const auto end = [&](bool midpoint_held, int direction) {
    return end_of_interval(cost, best, limit, midpoint_held, direction);
  };
  return {{best.midpoint, end(true, -1), end(true, 1)},
          {best.exponent, end(false, -1), end(false, 1)}};
}

}  // namespace indexpool::calibration
