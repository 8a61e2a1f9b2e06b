// Arithmetic with one explicit rounding each, and conversions. Included by device_cuda.cuh.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace indexpool::kernels::ip {

IP_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
IP_DEVICE float sub(float a, float b) { return __fsub_rn(a, b); }
IP_DEVICE float mul(float a, float b) { return __fmul_rn(a, b); }
IP_DEVICE float div(float a, float b) { return __fdiv_rn(a, b); }
IP_DEVICE float sqrt(float a) { return __fsqrt_rn(a); }
IP_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
IP_DEVICE float max_number(float a, float b) { return fmaxf(a, b); }
IP_DEVICE std::uint32_t bits_of(float value) { return __float_as_uint(value); }
IP_DEVICE float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
IP_DEVICE int count_bits(std::uint32_t value) { return __popc(value); }

IP_DEVICE float float_from_bf16(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}
IP_DEVICE float float_from_f16(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(bits));
  return value;
}
IP_DEVICE std::uint16_t bf16_from_float(float value) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
  return bits;
}
IP_DEVICE std::uint16_t f16_from_float(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
  return bits;
}

// Below 8.9 there is no conversion instruction: round to nearest even in integers, above 2^-6 by
// adding half of the last place that stays, below by the addition of 2^14, whose last place is
// 2^-9, the step of e4m3's subnormals.
IP_DEVICE std::uint8_t e4m3_from_float(float value) {
#if __CUDA_ARCH__ >= 890
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(pair) : "f"(0.0f), "f"(value));
  return static_cast<std::uint8_t>(pair & 0xff);
#else
  const std::uint32_t bits = __float_as_uint(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  std::uint32_t code;
  if (magnitude >= 0x3c800000u) {  // 2^-6
    const std::uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1);
    code = (rounded >> 20) - ((127 - 7) << 3);
    code = code > 0x7e ? 0x7e : code;
  } else {
    code = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 16384.0f)) -
           __float_as_uint(16384.0f);
  }
  return static_cast<std::uint8_t>((bits >> 24 & 0x80) | code);
#endif
}

// Exponent and mantissa moved to their places in binary32, then scaled by 2^(127 - 7); subnormal
// codes come out right because the product is exact.
IP_DEVICE float float_from_e4m3(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7fu;
  const float value = magnitude == 0x7f ? __uint_as_float(0x7fc00000u)
                                        : __fmul_rn(__uint_as_float(magnitude << 20), 0x1p120f);
  return __uint_as_float(__float_as_uint(value) | (code & 0x80u) << 24);
}

IP_DEVICE std::int8_t i8_from_float(float value) {
  const int rounded = __float2int_rn(value);  // saturates; NaN gives 0
  return static_cast<std::int8_t>(max(-127, min(127, rounded)));
}

}  // namespace indexpool::kernels::ip
