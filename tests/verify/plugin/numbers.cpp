#include "numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "indexpool/verify/plugin.h"

namespace naive {
namespace {

// A binary format: fraction bits, exponent bias, exponent bits, largest finite value.
struct Format {
  int fraction, bias, exponent;
  double largest;
};

constexpr double largest_f32 = 3.4028234663852886e38;   // (2 - 2^-23) * 2^127
constexpr double largest_bf16 = 3.3895313892515355e38;  // (2 - 2^-7) * 2^127

Format format_of(int dtype) {
  switch (dtype) {
    case INDEXPOOL_BF16:
      return {7, 127, 8, largest_bf16};
    case INDEXPOOL_F16:
      return {10, 15, 5, 65504};
    case INDEXPOOL_E4M3:
      return {3, 7, 4, 448};
    default:
      return {23, 127, 8, largest_f32};
  }
}

double value_of(const Format& format, std::uint32_t bits) {
  const std::uint32_t fraction = bits & ((1u << format.fraction) - 1);
  const int exponent = static_cast<int>(bits >> format.fraction) & ((1 << format.exponent) - 1);
  const bool negative = (bits >> (format.fraction + format.exponent) & 1u) != 0;
  const bool e4m3 = format.fraction == 3;
  const bool special = exponent == (1 << format.exponent) - 1;
  double value = 0;
  if (special && !e4m3) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (special && fraction == 7) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - format.bias - format.fraction);
  } else {
    value =
        std::ldexp(fraction + (1u << format.fraction), exponent - format.bias - format.fraction);
  }
  return negative ? -value : value;
}

// The bits of a value that the format holds exactly.
std::uint32_t bits_of(const Format& format, double value) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (format.fraction + format.exponent) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const auto units = static_cast<std::uint32_t>(std::ldexp(magnitude, format.fraction - exponent));
  const std::uint32_t implied = 1u << format.fraction;
  if (units < implied) return sign | units;  // subnormal
  return sign | static_cast<std::uint32_t>(exponent + format.bias) << format.fraction |
         (units - implied);
}

double nearest(const Format& format, double value) {
  if (value == 0 || std::isnan(value)) return value;
  const int exponent = std::max(std::ilogb(std::fabs(value)), 1 - format.bias);
  const double unit = std::ldexp(1.0, exponent - format.fraction);
  const double rounded = std::nearbyint(value / unit) * unit;  // ties to even, the default mode
  return std::clamp(rounded, -format.largest, format.largest);
}

}  // namespace

int size_of(int dtype) {
  return dtype == INDEXPOOL_F32 ? 4 : dtype == INDEXPOOL_BF16 || dtype == INDEXPOOL_F16 ? 2 : 1;
}

double load(int dtype, const void* data, std::int64_t index) {
  const auto* at = static_cast<const unsigned char*>(data) + index * size_of(dtype);
  if (dtype == INDEXPOOL_I8) return static_cast<std::int8_t>(*at);
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size_of(dtype)));
  return value_of(format_of(dtype), bits);
}

void store(int dtype, void* data, std::int64_t index, double value) {
  auto* at = static_cast<unsigned char*>(data) + index * size_of(dtype);
  if (dtype == INDEXPOOL_I8) {
    *at = static_cast<unsigned char>(static_cast<std::int8_t>(rounded(dtype, value)));
    return;
  }
  const std::uint32_t bits = bits_of(format_of(dtype), rounded(dtype, value));
  std::memcpy(at, &bits, static_cast<std::size_t>(size_of(dtype)));
}

double rounded(int dtype, double value) {
  if (dtype == INDEXPOOL_I8) return std::clamp(std::nearbyint(value), -127.0, 127.0);
  return nearest(format_of(dtype), value);
}

}  // namespace naive
