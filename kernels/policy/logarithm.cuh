// Natural logarithm in f32 from fused multiply-adds and one division, the same bits on every
// target.
#pragma once

#include "indexpool/kernels/device.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// log(x) for normal x > 0, within 1 ulp (tests/kernels/policy_arithmetic_test.cpp goes through
// every float of two octaves and samples the others).
//
// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f):
// log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R), R = 2 s^2 / 3 + 2 s^4 / 5 + ... (fdlibm, e_log.c);
// s^2 < 0.0295, so what follows the fifth term is below 2^-29 of f. n ln2 in two parts, the first
// exact.
IP_DEVICE float log_f32(float x) {
  constexpr float ln2_high = 0x1.62e400p-1f, ln2_low = 0x1.7f7d1cp-20f;
  constexpr std::uint32_t half_root = 0x3f3504f3u;  // sqrt(1/2)
  const std::uint32_t shifted = ip::bits_of(x) - half_root;
  const auto n = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float f = ip::sub(ip::float_of((shifted & 0x7fffffu) + half_root), 1.0f);
  const float s = ip::div(f, ip::add(2.0f, f));
  const float z = ip::mul(s, s);
  float r = 2.0f / 11;
  r = ip::fma(r, z, 2.0f / 9);
  r = ip::fma(r, z, 2.0f / 7);
  r = ip::fma(r, z, 2.0f / 5);
  r = ip::fma(r, z, 2.0f / 3);
  r = ip::mul(r, z);
  const float half_square = ip::mul(0.5f, ip::mul(f, f));
  const float low = ip::fma(s, ip::add(half_square, r), ip::mul(n, ln2_low));
  return ip::fma(n, ln2_high, ip::sub(f, ip::sub(half_square, low)));
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
