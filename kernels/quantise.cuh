// One scale for a head spread over D / 8 lanes, and its codes.
#pragma once

#include "indexpool/kernels/hadamard.cuh"
#include "indexpool/model/config.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// The floor under amax (vLLM, SGLang and DeepSeek-V3.2 alike).
inline constexpr float smallest_amax = 1e-4f;

template <DType Cache>
consteval float largest_code() {
  static_assert(Cache == DType::e4m3 || Cache == DType::i8);
  return Cache == DType::e4m3 ? 448.0f : 127.0f;
}

// 2^ceil(log2(amax / 448)) without a logarithm: 448 = 1.75 * 2^8, so amax = 1.f * 2^e gives 2^(e-8)
// while 1.f <= 1.75, else 2^(e-7). amax >= 1e-4 keeps both the scale and its inverse normal.
IP_DEVICE float power_of_two_scale(float amax) {
  const std::uint32_t bits = ip::bits_of(amax);
  const std::uint32_t exponent = (bits >> 23) - 8 + ((bits & 0x7fffff) > 0x600000 ? 1 : 0);
  return ip::float_of(exponent << 23);
}

template <DType Cache, ScaleRule Rule>
IP_DEVICE float scale_of(float amax) {
  static_assert(Rule != ScaleRule::none);
  const float floored = ip::max_number(amax, smallest_amax);
  if constexpr (Rule == ScaleRule::power_of_two) {
    static_assert(Cache == DType::e4m3);
    return power_of_two_scale(floored);
  } else {
    return ip::div(floored, largest_code<Cache>());
  }
}

// x / scale; for powers of two the product with the inverse is the same number.
template <ScaleRule Rule>
IP_DEVICE float scaled(float x, float scale) {
  if constexpr (Rule == ScaleRule::power_of_two)
    return ip::mul(x, ip::float_of((254u << 23) - ip::bits_of(scale)));
  else
    return ip::div(x, scale);
}

template <DType Cache>
IP_DEVICE std::uint8_t code_of(float value) {
  if constexpr (Cache == DType::e4m3)
    return ip::e4m3_from_float(value);
  else
    return static_cast<std::uint8_t>(ip::i8_from_float(value));
}

struct alignas(8) Codes8 {
  std::uint32_t low, high;
};

struct Quantised {
  Codes8 codes;
  float scale;
};

// amax over the group, its scale, the codes of this lane's channels.
template <int D, DType Cache, ScaleRule Rule>
IP_DEVICE Quantised quantise(const float (&x)[channels_per_lane]) {
  float amax = 0;
  for (int i = 0; i < channels_per_lane; ++i)
    amax = ip::max_number(amax, ip::float_of(ip::bits_of(x[i]) & 0x7fffffff));
  Quantised result;
  result.scale = scale_of<Cache, Rule>(group_max<D>(amax));
  std::uint32_t words[2] = {0, 0};
  for (int i = 0; i < channels_per_lane; ++i)
    words[i / 4] |= static_cast<std::uint32_t>(code_of<Cache>(scaled<Rule>(x[i], result.scale)))
                    << 8 * (i % 4);
  result.codes = {words[0], words[1]};
  return result;
}

IP_DEVICE std::uint8_t code_at(const Codes8& codes, int i) {
  return static_cast<std::uint8_t>((i < 4 ? codes.low : codes.high) >> 8 * (i % 4));
}

// A code in units of its format's smallest step (e4m3: 2^-9), an integer below 2^18.
template <DType Cache>
IP_DEVICE std::int32_t code_units(std::uint8_t code) {
  if constexpr (Cache == DType::i8) {
    return static_cast<std::int8_t>(code);
  } else {
    const std::int32_t exponent = code >> 3 & 0xf, mantissa = code & 7;
    const std::int32_t units = exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
    return (code & 0x80) != 0 ? -units : units;
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
