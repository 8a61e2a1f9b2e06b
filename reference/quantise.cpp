// Block quantisation: one scale per vector, one code per element.
#include <algorithm>
#include <cmath>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {
namespace {

// Lower bound of the largest magnitude, so that zero vectors have a scale.
const double amax_floor = round_f32(1e-4);

double largest_code(const NumericMode& mode) { return format_of(mode.cache).largest; }

// 2^ceil(log2(amax / largest)) without logarithms: with amax / largest = f 2^e, f in [0.5, 1),
// the answer is 2^e, or 2^(e-1) when f is exactly 0.5.
double power_of_two_above(double amax, double largest) {
  int exponent = 0;
  const double fraction = std::frexp(amax, &exponent);
  int largest_exponent = 0;
  const double largest_fraction = std::frexp(largest, &largest_exponent);
  exponent -= largest_exponent;
  return std::ldexp(1.0, fraction > largest_fraction ? exponent + 1 : exponent);
}

// An amax with more bits than bf16 may lie so close above largest * 2^k that a logarithm in
// binary32 says k: log2 errs by 0.919 ulp of its result (measured), and the quotient by 1.5 u.
double logarithm_slack(double amax, const NumericMode& mode) {
  if (format_of(mode.pooled).digits <= 11) return 0;  // the next amax is 2^-10 away
  const double exponent = std::abs(std::log2(amax / largest_code(mode)));
  return (4 + 2 * exponent) * u32;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return x > 0 && std::frexp(x, &exponent) == 0.5;
}

}  // namespace

Range scale_enclosure(std::span<const double> low, std::span<const double> high,
                      const NumericMode& mode) {
  require(low.size() == high.size(), "as many lower ends as upper ends");
  double least = 0, most = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const bool around_zero = low[i] <= 0 && high[i] >= 0;
    least = std::max(least, around_zero ? 0 : std::min(std::abs(low[i]), std::abs(high[i])));
    most = std::max({most, std::abs(low[i]), std::abs(high[i])});
  }
  if (!std::isfinite(most)) return {-HUGE_VAL, HUGE_VAL};
  least = std::max(least, amax_floor);
  most = std::max(most, amax_floor);
  switch (mode.scale) {
    case ScaleRule::none:
      return {1, 1};
    case ScaleRule::power_of_two:
      return {power_of_two_above(least * (1 - logarithm_slack(least, mode)), largest_code(mode)),
              power_of_two_above(most * (1 + logarithm_slack(most, mode)), largest_code(mode))};
    case ScaleRule::amax: {
      // A division to 2 ulp, or the product with a rounded reciprocal; 1 more for this function.
      const double largest = largest_code(mode);
      return {round_f32(least / largest * (1 - gamma(5))),
              round_f32(most / largest * (1 + gamma(5)))};
    }
  }
  return {1, 1};
}

Range code_enclosure(double low, double high, double stored_scale, const NumericMode& mode) {
  if (!std::isfinite(low) || !std::isfinite(high)) return {-HUGE_VAL, HUGE_VAL};
  const Format format = format_of(mode.cache);
  // x / s to 2 ulp, or x times a rounded 1 / s; exact for powers of two.
  const double slack = is_power_of_two(stored_scale) ? 0 : gamma(5);
  const auto outward = [slack](double x, double sign) { return x + sign * slack * std::abs(x); };
  return {round_to_format(outward(low / stored_scale, -1), format),
          round_to_format(outward(high / stored_scale, +1), format)};
}

Quantised quantise(std::span<const double> values, const NumericMode& mode) {
  const Format format = format_of(mode.cache);
  double amax = amax_floor;
  for (const double x : values) amax = std::max(amax, std::abs(x));
  Quantised result{1, {}};
  if (mode.scale == ScaleRule::power_of_two) {
    result.scale = power_of_two_above(amax, largest_code(mode));
  } else if (mode.scale == ScaleRule::amax) {
    result.scale = round_f32(amax / largest_code(mode));
  }
  result.codes.reserve(values.size());
  for (const double x : values) {
    result.codes.push_back(round_to_format(round_f32(x / result.scale), format));
  }
  return result;
}

}  // namespace indexpool::reference
