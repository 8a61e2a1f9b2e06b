// Operands of the logits' matrix instructions: how codes become fragments.
//
// Every instruction used here takes 32 bytes of a row per step of k, whatever the element: 16
// elements of bf16 or f16, 32 of int8 or e4m3. In bytes the fragments of all of them are the same,
// so one layout and one ldmatrix serve them all.
#pragma once

#include <cstdint>
#include <type_traits>

#include "indexpool/kernels/device.cuh"
#include "indexpool/kernels/logits_geometry.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// Rows of `RowBytes` in shared memory, 16-byte chunks permuted so that the same chunk of eight
// neighbouring rows lies in eight different groups of four banks (what ldmatrix reads at once).
template <int RowBytes>
struct Swizzle {
  static constexpr int chunks = RowBytes / 16;
  static constexpr int rows_per_line = chunks < 8 ? 8 / chunks : 1;  // a line: all 32 banks
  IP_DEVICE static int offset(int row, int chunk) {
    constexpr int mask = (chunks < 8 ? chunks : 8) - 1;
    return (row * chunks + (chunk ^ (row / rows_per_line & mask))) * 16;
  }
};

// Two e4m3 codes in bytes 0 and 1 of `codes` to two f16 of 2^-8 times their value: exponent and
// mantissa move to their places as they are, the difference of the biases is 8. Exact, in integer
// instructions every device has; subnormal codes become subnormal f16 (what the instruction aligns
// as if they were the smallest normal, see reference/logits.cpp); NaN stays NaN.
inline constexpr float converted_scale = 65536.0f;  // undoes 2^-8 of both operands of a product
IP_DEVICE std::uint32_t f16_pair_from_e4m3(std::uint32_t codes) {
  const std::uint32_t pair = (codes & 0xffu) | (codes & 0xff00u) << 8;
  const std::uint32_t magnitude = pair & 0x007f007fu;
  const std::uint32_t is_nan = (magnitude + 0x00010001u) & 0x00800080u;
  return magnitude << 7 | (pair & 0x00800080u) << 8 | is_nan * 0xf8u;  // 0x80 * 0xf8 = 0x7c00
}

// What a kernel asks of a Multiply, as constants: device code calls no host function.
template <Multiply M>
struct Operand {
  static constexpr bool converted = converts(M);
  static constexpr bool scaled = has_scales(M);
  static constexpr DType cache = cache_dtype(M);
};

template <Multiply M>
using Accumulator = std::conditional_t<M == Multiply::i8, std::int32_t, float>;

template <Multiply M>
IP_DEVICE void multiply(Accumulator<M> (&d)[4], const std::uint32_t (&a)[4],
                        const std::uint32_t (&b)[2]) {
  if constexpr (M == Multiply::bf16)
    ip::mma_m16n8k16_bf16(d, a, b);
  else if constexpr (M == Multiply::i8)
    ip::mma_m16n8k32_s8(d, a, b);
  else if constexpr (M == Multiply::e4m3)
    ip::mma_m16n8k32_e4m3(d, a, b);
  else
    ip::mma_m16n8k16_f16(d, a, b);
}

// A dot product as f32. Integers below 2^23 take the place of the mantissa of 2^23, which is exact
// and cheaper than a conversion: |dot| <= 128 * 127^2 < 2^21. Negative ones come out as zero, which
// is what relu makes of them.
IP_DEVICE float dot_value(float dot) { return dot; }
IP_DEVICE float dot_value(std::int32_t dot) {
  const std::int32_t positive = dot < 0 ? 0 : dot;
  return ip::sub(ip::float_of(0x4b000000u + static_cast<std::uint32_t>(positive)), 8388608.0f);
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
