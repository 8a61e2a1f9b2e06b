// How rows are dealt to threads, shared by the kernels and by what they declare.
#pragma once

#include <cstdint>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

// A head of D channels lies in D / 8 neighbouring lanes: 16 bytes of bf16 each, one load.
inline constexpr int channels_per_lane = 8;
// Tokens of a pool whose loads are in flight together; an index_kpool of this size is read once.
inline constexpr int tokens_in_flight = 4;

inline constexpr int pool_threads = 128;
inline constexpr int seed_tail_threads = 128;
inline constexpr int append_threads = 64;  // few requests: spread them over the SMs
inline constexpr int quantize_query_threads = 256;

// Blocks that the launch bounds promise per SM; the compiler keeps registers within.
// f32 rows take twice the registers of 16-bit ones.
constexpr int pool_blocks_per_sm(DType storage) { return storage == DType::f32 ? 3 : 4; }
inline constexpr int seed_tail_blocks_per_sm = 16;
inline constexpr int append_blocks_per_sm = 4;
inline constexpr int quantize_query_blocks_per_sm = 8;

// Blocks of `per_block` items each.
constexpr std::int64_t blocks_for(std::int64_t items, std::int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

}  // namespace indexpool::kernels
