// Conversions between double and the narrow floating-point formats, in integer arithmetic.
#include "indexpool/model/dtype_float.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// 2^n for the exponents a normal double has.
constexpr double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// bfloat16 is the upper half of binary32; IEEE 754 binary16; FP8 from the OCP OFP8 specification
// 1.0, table 1. Overflow: to infinity for the 16-bit formats, to the largest value for FP8, as
// PTX's cvt.rn.satfinite. NaN becomes the one code that PTX's cvt gives, without its sign.
constexpr NarrowFormat bf16_format{8, 7, 127, 0x7f7f, 0x7f80, 0x7fff, true};
constexpr NarrowFormat f16_format{5, 10, 15, 0x7bff, 0x7c00, 0x7fff, true};
constexpr NarrowFormat e4m3_format{4, 3, 7, 0x7e, 0x7e, 0x7f, false};
constexpr NarrowFormat e5m2_format{5, 2, 15, 0x7b, 0x7b, 0x7f, true};

constexpr std::uint32_t sign_of(const NarrowFormat& format) {
  return 1U << (format.exponent_bits + format.mantissa_bits);
}

// Right shift, rounded to nearest, ties to even; 1 <= shift <= 63.
constexpr std::uint64_t shift_rounded(std::uint64_t value, int shift) {
  const std::uint64_t quotient = value >> shift;
  const std::uint64_t rest = value - (quotient << shift);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1) != 0) ? 1 : 0);
}

}  // namespace

const NarrowFormat& narrow_format(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return bf16_format;
    case DType::f16:
      return f16_format;
    case DType::e4m3:
      return e4m3_format;
    default:
      require(dtype == DType::e5m2, "narrow_format is asked for a dtype that is not narrow");
      return e5m2_format;
  }
}

std::uint32_t encode(const NarrowFormat& format, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = (bits >> 63) != 0 ? sign_of(format) : 0;
  if (std::isnan(value)) return format.nan;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  if (exponent == -1023) return sign;  // a subnormal double is below half of any narrow subnormal
  const std::uint64_t significand =
      (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  const int below_normal = std::max(0, 1 - format.bias - exponent);
  const int shift = 52 - format.mantissa_bits + below_normal;
  if (shift > 53) return sign;  // below half of the smallest subnormal
  const std::uint64_t rounded = shift_rounded(significand, shift);
  // The significand's leading one adds 1 to the exponent field, and so does a carry out of it.
  const int field = below_normal > 0 ? 0 : exponent + format.bias - 1;
  const std::uint64_t code = (static_cast<std::uint64_t>(field) << format.mantissa_bits) + rounded;
  return sign | (code > format.largest ? format.overflow : static_cast<std::uint32_t>(code));
}

double decode(const NarrowFormat& format, std::uint32_t code) {
  const double sign = (code & sign_of(format)) != 0 ? -1.0 : 1.0;
  const std::uint32_t magnitude = code & (sign_of(format) - 1);
  if (magnitude > format.largest) {
    const bool is_infinite = format.infinities && magnitude == format.largest + 1;
    return std::copysign(is_infinite ? HUGE_VAL : std::nan(""), sign);
  }
  const auto field = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const int scale = 1 - format.bias - format.mantissa_bits;
  if (field == 0) return sign * mantissa * power_of_two(scale);
  return sign * (mantissa + (1U << format.mantissa_bits)) * power_of_two(scale + field - 1);
}

std::uint16_t bf16_from_float(float value) {
  return static_cast<std::uint16_t>(encode(bf16_format, value));
}
std::uint16_t f16_from_float(float value) {
  return static_cast<std::uint16_t>(encode(f16_format, value));
}
std::uint8_t e4m3_from_float(float value) {
  return static_cast<std::uint8_t>(encode(e4m3_format, value));
}
std::uint8_t e5m2_from_float(float value) {
  return static_cast<std::uint8_t>(encode(e5m2_format, value));
}

float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
float float_from_f16(std::uint16_t bits) { return static_cast<float>(decode(f16_format, bits)); }
float float_from_e4m3(std::uint8_t code) { return static_cast<float>(decode(e4m3_format, code)); }
float float_from_e5m2(std::uint8_t code) { return static_cast<float>(decode(e5m2_format, code)); }

}  // namespace indexpool
