// The narrow formats once more, from their definition and slowly, to test the fast conversions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "indexpool/model/dtype.hpp"

namespace indexpool {

struct Narrow {
  const char* name;
  DType dtype;
  int exponent_bits, mantissa_bits;
  std::uint32_t largest;  // code of the largest finite value
  bool saturates;
  std::uint32_t (*from_float)(float);
  float (*to_float)(std::uint32_t);

  std::uint32_t codes() const { return 2U << (exponent_bits + mantissa_bits); }
  std::uint32_t sign() const { return codes() / 2; }
  std::uint32_t overflow() const { return saturates ? largest : largest + 1; }
};

inline const std::vector<Narrow>& narrow_formats() {
  static const std::vector<Narrow> formats = {
      {"bf16", DType::bf16, 8, 7, 0x7f7f, false,
       [](float v) -> std::uint32_t { return bf16_from_float(v); },
       [](std::uint32_t c) { return float_from_bf16(static_cast<std::uint16_t>(c)); }},
      {"f16", DType::f16, 5, 10, 0x7bff, false,
       [](float v) -> std::uint32_t { return f16_from_float(v); },
       [](std::uint32_t c) { return float_from_f16(static_cast<std::uint16_t>(c)); }},
      {"e4m3", DType::e4m3, 4, 3, 0x7e, true,
       [](float v) -> std::uint32_t { return e4m3_from_float(v); },
       [](std::uint32_t c) { return float_from_e4m3(static_cast<std::uint8_t>(c)); }},
      {"e5m2", DType::e5m2, 5, 2, 0x7b, true,
       [](float v) -> std::uint32_t { return e5m2_from_float(v); },
       [](std::uint32_t c) { return float_from_e5m2(static_cast<std::uint8_t>(c)); }}};
  return formats;
}

// (-1)^s 2^(e - bias) (1 + m / 2^M), without the leading one and with e = 1 when e is 0.
inline double value_by_definition(const Narrow& format, std::uint32_t code) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t magnitude = code % format.sign();
  const auto e = static_cast<int>(magnitude >> format.mantissa_bits);
  const double m = std::ldexp(magnitude % (1U << format.mantissa_bits), -format.mantissa_bits);
  const double value = e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias);
  return code >= format.sign() ? -value : value;
}

// Values of the codes 0 to largest, ascending, and the one that would come next.
inline std::vector<double> ascending_values(const Narrow& format) {
  std::vector<double> values;
  for (std::uint32_t code = 0; code <= format.largest; ++code) {
    values.push_back(value_by_definition(format, code));
  }
  values.push_back(2 * values.back() - values[values.size() - 2]);
  return values;
}

// The code nearest to `value` by search among `values`; of two equally near, the even one.
inline std::uint32_t nearest_code(const Narrow& format, const std::vector<double>& values,
                                  double value) {
  const std::uint32_t sign = std::signbit(value) ? format.sign() : 0;
  const double magnitude = std::fabs(value);
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return sign | format.overflow();
  auto code = static_cast<std::uint32_t>(above - values.begin());
  if (code > 0) {
    const double middle = (values[code - 1] + values[code]) / 2;  // exact: one bit more
    if (magnitude < middle || (magnitude == middle && code % 2 == 1)) --code;
  }
  return sign | (code > format.largest ? format.overflow() : code);
}

// Every midpoint between neighbours and the floats next to it, both signs.
inline std::vector<float> floats_around_ties(const Narrow& format) {
  const std::vector<double> values = ascending_values(format);
  std::vector<float> floats;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto middle = static_cast<float>((values[i - 1] + values[i]) / 2);
    for (const float v : {std::nextafter(middle, 0.0F), middle,
                          std::nextafter(middle, std::numeric_limits<float>::infinity())}) {
      floats.push_back(v);
      floats.push_back(-v);
    }
  }
  return floats;
}

}  // namespace indexpool
