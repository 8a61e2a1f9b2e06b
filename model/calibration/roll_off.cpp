// Where an L2 lets go: midpoint and exponent of the logistic of model/cost.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/calibration/fits.hpp"
#include "indexpool/model/calibration/golden_section.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

constexpr double least_exponent = 2, most_exponent = 200;
// A run repeats to about this, however well the logistic fits.
constexpr double least_error = 0.01;
constexpr double interval_90 = 2.706;  // of chi squared with one degree of freedom

// Sum of squared relative errors of a + b * (1 - resident share), a and b at their best.
class Objective {
 public:
  explicit Objective(std::span<const CachedReadSample> reads) {
    for (const CachedReadSample& read : reads) {
      points_.push_back(
          {Bytes(read.footprint_bytes), read.seconds.median / static_cast<double>(read.bytes)});
    }
  }

  double operator()(double midpoint, double exponent) { return fitted(midpoint, exponent).cost; }
  // How much longer a byte takes that is not resident.
  double surplus(double midpoint, double exponent) { return fitted(midpoint, exponent).surplus; }

 private:
  struct Point {
    Bytes footprint;
    double seconds;
  };
  struct Line {
    double surplus, cost;
  };

  // Normal equations of two unknowns, each row divided by its time.
  Line fitted(double midpoint, double exponent) {
    device_.l2_residency_bytes.value = midpoint;
    device_.l2_residency_exponent.value = exponent;
    double ss = 0, sm = 0, mm = 0, s = 0, m = 0;
    for (const Point& point : points_) {
      const double scale = 1 / point.seconds;
      const double missing = (1 - l2_resident_share(point.footprint, device_)) * scale;
      ss += scale * scale, sm += scale * missing, mm += missing * missing;
      s += scale, m += missing;
    }
    const double determinant = ss * mm - sm * sm;
    if (!(determinant > 1e-12 * ss * mm)) return {0, static_cast<double>(points_.size())};
    const double a = (s * mm - m * sm) / determinant, b = (m * ss - s * sm) / determinant;
    return {b, static_cast<double>(points_.size()) - a * s - b * m};
  }

  std::vector<Point> points_;
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

// The least cost with one constant held.
double profile(Objective& cost, const Point& best, double held, bool midpoint_held) {
  if (midpoint_held) {
    const double other = golden_section(least_exponent, most_exponent,
                                        [&](double exponent) { return cost(held, exponent); });
    return cost(held, other);
  }
  const double other = golden_section(best.midpoint / 1.5, best.midpoint * 1.5,
                                      [&](double midpoint) { return cost(midpoint, held); });
  return cost(other, held);
}

// Walks away from the best point until the profile passes `limit`, then halves the last step.
double end_of_interval(Objective& cost, const Point& best, double limit, bool midpoint_held,
                       int direction) {
  const auto inside = [&](double at) {
    const bool possible = midpoint_held || (at >= least_exponent && at <= most_exponent);
    return possible && profile(cost, best, at, midpoint_held) <= limit;
  };
  double at = midpoint_held ? best.midpoint : best.exponent;
  double step = midpoint_held ? 0.02 : 0.1;
  int walked = 0;
  constexpr int most_steps = 50;
  for (; walked < most_steps && inside(at * std::exp(direction * step)); ++walked) {
    at *= std::exp(direction * step);
  }
  for (int halving = 0; halving < 6; ++halving) {
    step /= 2;
    if (inside(at * std::exp(direction * step))) at *= std::exp(direction * step);
  }
  return at;
}

}  // namespace

RollOff l2_roll_off(std::span<const CachedReadSample> reads, Bytes capacity) {
  const auto bytes = static_cast<double>(capacity.value);
  const auto footprints = [&](double low, double high) {
    return std::count_if(reads.begin(), reads.end(), [&](const CachedReadSample& read) {
      const double share = static_cast<double>(read.footprint_bytes) / bytes;
      return share > low && share <= high;
    });
  };
  if (footprints(0, 0.75) < 2 || footprints(0.5, 1.5) < 4 || footprints(1.5, 1e9) < 2) {
    throw ConfigError(fmt::format(
        "the L2's roll-off needs rounds by few threads on both sides of its {:.4g} MB: at least "
        "2 footprints up to 0.75, 4 from 0.5 to 1.5 and 2 above 1.5 of it; found {}, {} and {}",
        bytes / 1e6, footprints(0, 0.75), footprints(0.5, 1.5), footprints(1.5, 1e9)));
  }
  Objective cost(reads);
  Point best{bytes, 10, cost(bytes, 10)};
  best = least_on_grids(cost, best, std::log(2.5), std::log(12));
  if (!(cost.surplus(best.midpoint, best.exponent) > 0)) {
    throw ConfigError("the L2's roll-off: rounds over large footprints take no longer a byte");
  }
  const double freedom = static_cast<double>(std::max<std::size_t>(reads.size(), 5) - 4);
  const double variance = std::max(best.cost / freedom, least_error * least_error);
  const double limit = best.cost + interval_90 * variance;
  const auto end = [&](bool midpoint_held, int direction) {
    return end_of_interval(cost, best, limit, midpoint_held, direction);
  };
  return {{best.midpoint, end(true, -1), end(true, 1)},
          {best.exponent, end(false, -1), end(false, 1)}};
}

}  // namespace indexpool::calibration
