// Rounding to a storage format, on any scalar, and the constants of the rounding model.
// Written from the formats' definitions and apart from the bit manipulation in model/, so that each
// checks the other. Internal to the layer.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "indexpool/model/dtype.hpp"
#include "indexpool/reference/scalar.hpp"

namespace indexpool::reference {

// Unit roundoff of binary32, and the spacing of its subnormals.
inline constexpr double u32 = 0x1p-24;
inline constexpr double f32_subnormal = 0x1p-149;
inline constexpr double f32_smallest_normal = 0x1p-126;

// Whether a sum of magnitudes may round to infinity in binary32, in some order of its terms.
// Conservative by the roundings of 2^16 terms.
template <class T>
bool may_overflow_f32(const T& magnitude) {
  return !(magnitude < T(0x1p128 * (1 - 0x1p-8)));
}

// gamma_n = n u / (1 - n u): relative error of n roundings (Higham, Accuracy and Stability, 3.1).
inline double gamma(double n) { return n * u32 / (1 - n * u32); }

// A floating-point format: `digits` significand bits, smallest normal 2^min_exponent. Integers are
// the format whose spacing is 1 everywhere.
struct Format {
  int digits = 53;
  int min_exponent = -1022;
  double largest = 0;
  bool saturates = false;  // beyond `largest`: that value, else infinity
};
Format format_of(DType dtype);  // throws InternalError for i64, i32, u8

namespace detail {

// Round to nearest integer, ties to even. Exact for |x| < 2^(digits of T - 1).
template <class T>
T nearest_even(const T& x) {
  using std::floor;
  T below = floor(x);
  const T fraction = x - below;
  if (fraction > T(0.5) || (fraction == T(0.5) && floor(below / 2) * 2 != below)) below += 1;
  return below;
}
inline double nearest_even(double x) { return std::nearbyint(x); }

}  // namespace detail

// `x` rounded once to the format, ties to even. NaN stays NaN.
template <class T>
T round_to_format(const T& x, const Format& format) {
  using std::abs;
  using std::ilogb;
  using std::isfinite;
  using std::ldexp;
  if (x == 0 || x != x) return x;
  const T largest = format.largest;
  const T overflow = format.saturates ? largest : std::numeric_limits<T>::infinity();
  if (!isfinite(x)) return x > 0 ? overflow : T(-overflow);
  const int exponent = static_cast<int>(ilogb(x));
  const int spacing =
      (exponent > format.min_exponent ? exponent : format.min_exponent) - (format.digits - 1);
  T rounded = ldexp(detail::nearest_even(T(ldexp(x, -spacing))), spacing);
  if (abs(rounded) > largest) return rounded > 0 ? overflow : T(-overflow);
  return rounded;
}

// The same for double, where the exponent can be read off and powers of two written down.
inline double round_to_format(const double& x, const Format& format) {
  const auto biased = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff);
  const int exponent = std::max(biased - 1023, format.min_exponent);
  const int spacing = exponent - (format.digits - 1);
  const bool plain = biased != 0 && biased != 0x7ff && spacing > -1000 && spacing < 900;
  if (!plain) return round_to_format<double>(x, format);
  const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(spacing + 1023) << 52);
  const double rounded = std::nearbyint(x / unit) * unit;
  if (std::abs(rounded) <= format.largest) return rounded;
  return std::copysign(format.saturates ? format.largest : HUGE_VAL, x);
}

template <class T>
T round_f32(const T& x) {
  return round_to_format(x, Format{24, -126, 0x1.fffffep127, false});
}

// Rounding is monotone, so rounding the ends encloses the rounded results.
template <class T>
Enclosed<T> round_to_format(const Enclosed<T>& x, const Format& format) {
  return {round_to_format(x.value, format), round_to_format(x.low, format),
          round_to_format(x.high, format)};
}

// Exponent of the lowest set bit: x is a multiple of 2^result. A large number for 0.
inline constexpr int no_bits = 1 << 20;
int lowest_bit(double x);
// Exponent of a unit that every number of the format in [low, high] is a multiple of.
int unit_between(double low, double high, const Format& format);
// Are sums of multiples of 2^unit exact in binary32, in any order, when their magnitudes add up to
// `magnitude`?
inline bool sums_exactly(double magnitude, int unit) {
  return unit >= -149 && magnitude <= std::ldexp(1.0, std::min(24 + unit, 1000));
}

}  // namespace indexpool::reference
