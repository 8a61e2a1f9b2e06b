// How the logits kernels share out work and shared memory, for the kernels and for what they
// declare.
#pragma once

#include <cstdint>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

inline constexpr std::int64_t largest_head_count = 64;

// --- logits_mma, logits_e4m3 ---
// How codes of a cache are multiplied; `e4m3_as_f16` converts them, exactly, on the way.
enum class Multiply { bf16, f16, i8, e4m3_as_f16, e4m3 };

constexpr bool converts(Multiply m) { return m == Multiply::e4m3_as_f16; }
constexpr bool has_scales(Multiply m) { return m != Multiply::bf16 && m != Multiply::f16; }
constexpr int code_bytes(Multiply m) { return has_scales(m) ? 1 : 2; }
constexpr int operand_bytes(Multiply m) { return converts(m) ? 2 : code_bytes(m); }
constexpr DType cache_dtype(Multiply m) {
  return m == Multiply::bf16  ? DType::bf16
         : m == Multiply::f16 ? DType::f16
         : m == Multiply::i8  ? DType::i8
                              : DType::e4m3;
}

inline constexpr int mma_threads = 128;
inline constexpr int mma_warps = mma_threads / 32;
inline constexpr int mma_warp_pools = 32;
inline constexpr int mma_tile_pools = mma_warps * mma_warp_pools;
inline constexpr int mma_blocks_per_sm = 4;  // what the launch bounds promise
// sm_90 has the e4m3 instruction as f16 ones: fragments of pools take twice the registers.
inline constexpr int mma_e4m3_blocks_per_sm = 2;
inline constexpr int mma_step_bytes = 32;  // of a row, taken by one instruction along K

// Steps along K, and how ldmatrix brings them: two steps of eight heads, or one step of sixteen.
constexpr int mma_steps(Multiply m, int head_dim) {
  return head_dim * operand_bytes(m) / mma_step_bytes;
}
constexpr int mma_head_tiles(Multiply m, int head_dim) {
  return mma_steps(m, head_dim) == 1 ? 2 : 1;
}
constexpr int mma_loads(Multiply m, int head_dim) {
  return mma_steps(m, head_dim) == 1 ? 1 : mma_steps(m, head_dim) / 2;
}
constexpr int mma_group_heads(Multiply m, int head_dim) { return 8 * mma_head_tiles(m, head_dim); }

// Byte offsets in shared memory; the key tile lies at 0.
struct MmaShared {
  int queries, query_buffer;              // two buffers of operands
  int staging;                            // a row's codes before their conversion
  int head_weights, head_weights_buffer;  // two buffers
  int bytes;
};
constexpr MmaShared mma_shared(Multiply m, int head_dim, int heads) {
  const int group = mma_group_heads(m, head_dim);
  const int padded = (heads + group - 1) / group * group;
  const int code_row = head_dim * code_bytes(m);
  MmaShared at{};
  at.queries = mma_tile_pools * code_row;
  at.query_buffer = padded * head_dim * operand_bytes(m);
  at.staging = at.queries + 2 * at.query_buffer;
  at.head_weights = at.staging + (converts(m) ? heads * code_row : 0);
  at.head_weights_buffer = padded * 4;
  at.bytes = at.head_weights + 2 * at.head_weights_buffer;
  return at;
}

// --- logits_fma ---
inline constexpr int fma_threads = 128;
inline constexpr int fma_warps = fma_threads / 32;
inline constexpr int fma_tile_pools = 64;
inline constexpr int fma_lane_pools = fma_tile_pools / 32;
inline constexpr int fma_gathered_pools = fma_tile_pools / fma_warps;  // by a warp
inline constexpr int fma_warp_heads = 8;
inline constexpr int fma_stage_heads = fma_warps * fma_warp_heads;  // of a row, at a time
inline constexpr int fma_blocks_per_sm = 2;

struct FmaShared {
  int queries, query_buffer;
  int head_weights, head_weights_buffer;
  int partial_sums, partial_sums_buffer;
  int bytes;
};
constexpr FmaShared fma_shared(int head_dim) {
  FmaShared at{};
  at.queries = fma_tile_pools * head_dim * 4;
  at.query_buffer = fma_stage_heads * head_dim * 4;
  at.head_weights = at.queries + 2 * at.query_buffer;
  at.head_weights_buffer = fma_stage_heads * 4;
  at.partial_sums = at.head_weights + 2 * at.head_weights_buffer;
  at.partial_sums_buffer = fma_warps * fma_tile_pools * 4;
  at.bytes = at.partial_sums + 2 * at.partial_sums_buffer;
  return at;
}

}  // namespace indexpool::kernels
