#include "indexpool/verify/strategies/staleness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "indexpool/verify/strategies/settings.hpp"

namespace indexpool::verify::strategies {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// The largest change of cos(q, V) while V moves by `distance` at most.
double cosine_change(double distance, double length) {
  if (2 * length <= distance) return 2;
  return std::min(2.0, 2 * distance / (2 * length - distance));
}

}  // namespace

double log_weight_change(const WeightSlope& slope, double threshold,
                         std::span<const double> weights, std::span<const double> pooled_from) {
  if (slope.dependence == Dependence::none) return 0;
  if (slope.dependence == Dependence::gate) return slope.gate_sum * threshold;
  const std::size_t dim = pooled_from.size() / weights.size();
  const double distance = threshold * std::sqrt(static_cast<double>(dim));
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double moved = slope.cosine_share / 2 *
                         cosine_change(distance, norm_of(pooled_from.subspan(i * dim, dim)));
    if (moved >= weights[i]) return infinite;
    largest = std::max(largest, -std::log1p(-moved / weights[i]));
  }
  return largest;
}

std::vector<double> staleness_bound(double threshold, double log_weight_change,
                                    std::span<const double> pooled_from, std::int64_t vectors) {
  const auto m = static_cast<std::size_t>(vectors);
  const std::size_t dim = pooled_from.size() / m;
  const double mass = std::tanh(log_weight_change / 2);
  std::vector<double> bound(dim);
  for (std::size_t c = 0; c < dim; ++c) {
    double low = infinite, high = -infinite;
    for (std::size_t i = 0; i < m; ++i) {
      low = std::min(low, pooled_from[i * dim + c]);
      high = std::max(high, pooled_from[i * dim + c]);
    }
    const double rounding = 4 * static_cast<double>(m) * 0x1p-53 *
                            (std::max(std::abs(low), std::abs(high)) + threshold);
    bound[c] = threshold + mass * (high - low) + rounding;
  }
  return bound;
}

}  // namespace indexpool::verify::strategies
