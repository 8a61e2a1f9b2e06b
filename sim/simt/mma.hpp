// What mma.sync computes, as plain functions on matrices.
//
// Floating point: a tensor core does not round after every addition. The products of a step and the
// accumulator are aligned to the largest exponent among them, each is cut (towards zero) below a
// fixed number of fractional bits of that exponent, the rest is summed exactly, and the sum is cut
// to binary32. The exponent of a product is the sum of its factors' exponents (so the product's
// significand is in [1, 4)); subnormal factors keep the smallest normal exponent; zeros do not
// count.
//
//   sm80: 24 fractional bits; k = 16 goes in two steps of 8, the second on the first's result
//         (published: MMA-Sim, arXiv 2511.10909; FTTN, arXiv 2403.00232).
//   sm90: 25 fractional bits; all 16 products and the accumulator in one step (cancellation probes
//         on an H200: 2^27 + 14 gives 2^27, 1 + 1.5 * 2^-24 gives 1).
//   e4m3: only from sm_89 on. m16n8k32 behaves like two f16 steps of the sm90 kind without the
//         accumulator, bytes 0 and 1 of every four k first, then bytes 2 and 3 on that result; the
//         sum is added to the accumulator with round to nearest (H200: 2^27 + 14 gives 2^27 + 16).
//         Both MatrixModels follow it.
//
// An infinite product or accumulator, or NaN, gives what IEEE addition would, every NaN being
// 0x7fffffff; a sum of 2^128 or more is infinite; a sum cut to nothing, and an exact zero, is +0.
// Compared with an H200, 256,000 random sums for each of several exponent spreads, with and without
// infinities and NaN among the operands: e4m3 (six spreads) and f16 (four) gave the device's bits;
// bf16 (five) too, but for 13 sums of 2,560,000, all subnormal, off in the last bits kept.
#pragma once

#include <cstdint>

#include "indexpool/sim/simt/session.hpp"

namespace indexpool::sim::simt {

enum class HalfFormat { bf16, f16 };

// d[16][8] += a[16][16] b[16][8], all row-major, 16-bit codes of `format`.
void multiply_add_16x8x16(MatrixModel model, HalfFormat format, const std::uint16_t* a,
                          const std::uint16_t* b, float* d);
// d[16][8] += a[16][32] b[32][8], e4m3 codes.
void multiply_add_16x8x32_e4m3(const std::uint8_t* a, const std::uint8_t* b, float* d);
// Exact, modulo 2^32.
void multiply_add_16x8x32_s8(const std::int8_t* a, const std::int8_t* b, std::int32_t* d);

}  // namespace indexpool::sim::simt
