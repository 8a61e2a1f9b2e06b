#include "indexpool/reference/rounding.hpp"

#include <bit>

#include "indexpool/model/error.hpp"

namespace indexpool::reference {

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {53, -1022, std::numeric_limits<double>::max(), false};
    case DType::f32:
      return {24, -126, 0x1.fffffep127, false};
    case DType::bf16:
      return {8, -126, 0x1.fep127, false};
    case DType::f16:
      return {11, -14, 65504, false};
    case DType::e4m3:  // OCP OFP8 1.0, the variant without infinities
      return {4, -6, 448, true};
    case DType::e5m2:
      return {3, -14, 57344, true};
    case DType::i8:  // symmetric; spacing 2^0 for every |x| <= 127
      return {1 + 20, 20, 127, true};
    case DType::i64:
    case DType::i32:
    case DType::u8:
      break;
  }
  require(false, "a rounding step to an integer index type");
  return {};
}

int lowest_bit(double x) {
  if (x == 0) return no_bits;
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);  // [0.5, 1): 53 bits after the point
  const auto integer = static_cast<std::uint64_t>(std::ldexp(std::abs(significand), 53));
  return exponent - 53 + std::countr_zero(integer);
}

int unit_between(double low, double high, const Format& format) {
  if (low == high) return lowest_bit(low);
  const double least = low <= 0 && high >= 0 ? 0 : std::min(std::abs(low), std::abs(high));
  const int exponent = least == 0 ? format.min_exponent : std::ilogb(least);
  return std::max(exponent, format.min_exponent) - (format.digits - 1);
}

}  // namespace indexpool::reference
