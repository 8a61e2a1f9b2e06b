// exp in f32 from fused multiply-adds alone, so that every target gives the same bits.
#pragma once

#include "indexpool/kernels/device.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// exp(x) for any x, within 2 ulp of the true value (tests/kernels/arithmetic.cpp goes through every
// float); NaN stays NaN, overflow is infinity, underflow is gradual.
//
// x = n ln2 + r with |r| <= ln2 / 2, in Cody and Waite's two steps: ln2 = high + low, where high
// has few enough bits that n * high is exact. Adding 1.5 * 2^23 rounds to an integer n and leaves
// it in the low mantissa bits. exp(r) is Taylor's polynomial of degree 7, whose remainder r^8 / 8!
// stays below 6e-9, a tenth of an ulp. 2^n is applied in two halves, since n alone may leave the
// exponent range; only the second product rounds, and only when the result is subnormal.
IP_DEVICE float exp_f32(float x) {
  constexpr float log2_e = 0x1.715476p+0f;
  constexpr float ln2_high = 0x1.62e400p-1f;  // 15 bits; |n| <= 151 needs 8 more
  constexpr float ln2_low = 0x1.7f7d1cp-20f;
  constexpr float round_to_integer = 0x1.8p+23f;
  // Beyond these the result is infinity and zero; written so that NaN passes.
  x = x > 89.0f ? 89.0f : x;
  x = x < -105.0f ? -105.0f : x;
  const float shifted = ip::fma(x, log2_e, round_to_integer);
  const float n = ip::sub(shifted, round_to_integer);
  const float r = ip::fma(n, -ln2_low, ip::fma(n, -ln2_high, x));
  float p = 1.0f / 5040;
  p = ip::fma(p, r, 1.0f / 720);
  p = ip::fma(p, r, 1.0f / 120);
  p = ip::fma(p, r, 1.0f / 24);
  p = ip::fma(p, r, 1.0f / 6);
  p = ip::fma(p, r, 0.5f);
  p = ip::fma(p, r, 1.0f);
  p = ip::fma(p, r, 1.0f);
  const auto exponent =
      static_cast<std::int32_t>(ip::bits_of(shifted) - ip::bits_of(round_to_integer));
  const std::int32_t half = exponent >> 1;
  const auto power = [](std::int32_t k) {
    return ip::float_of(static_cast<std::uint32_t>(k + 127) << 23);
  };
  return ip::mul(ip::mul(p, power(half)), power(exponent - half));
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
