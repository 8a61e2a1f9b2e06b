// Products of 16 tokens' hidden states with the gate's rows on matrix cores.
//
// A = hidden states (16 tokens), B = rows of gate_weight (8 heads a tile), K = channels. Both lie
// in memory with K contiguous, so a lane loads 16 bytes, eight channels of one row, and gives their
// four words to two instructions: any order along K will do as long as it is the same for A and B.
// Lane 4 g + t holds tokens g and g + 8, heads g and g + 8, channels 8 t ... 8 t + 7 of a chunk of
// 32: four lanes read 64 contiguous bytes, two whole sectors.
#pragma once

#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct HiddenGatesParams {
  const std::byte* hidden_states;
  const std::byte* gate_weight;
  std::int64_t tokens;
  std::int32_t hidden, row_channels, heads;  // X, X + D
  float* hidden_gates;
};

// Eight channels of `row`, zeros where there are none.
IP_DEVICE ip::Vec16 load_channels(const std::byte* row, bool exists) {
  if (!exists) return ip::Vec16{0, 0, 0, 0};
  return ip::load_global(reinterpret_cast<const ip::Vec16*>(row));
}

template <DType T>
IP_DEVICE void multiply_half(float (&d)[4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2]) {
  if constexpr (T == DType::bf16)
    ip::mma_m16n8k16_bf16(d, a, b);
  else
    ip::mma_m16n8k16_f16(d, a, b);
}
template <DType T>
IP_DEVICE void multiply_chunk(float (&d)[4], const ip::Vec16& low, const ip::Vec16& high,
                              const ip::Vec16& heads) {
  const std::uint32_t a0[4] = {low.x, high.x, low.y, high.y}, b0[2] = {heads.x, heads.y};
  const std::uint32_t a1[4] = {low.z, high.z, low.w, high.w}, b1[2] = {heads.z, heads.w};
  multiply_half<T>(d, a0, b0);
  multiply_half<T>(d, a1, b1);
}

// One warp's share: chunks `warp`, `warp` + gate_warps, ... of the block's 16 tokens.
template <DType T>
IP_DEVICE void multiply_share(const HiddenGatesParams& p, std::int64_t first_token,
                              float (&d)[2][4]) {
  constexpr int bytes = bytes_of(T);
  const int row = ip::lane_index() >> 2, channel = channels_per_lane * (ip::lane_index() & 3);
  const bool has_low = first_token + row < p.tokens, has_high = first_token + row + 8 < p.tokens;
  const bool has_head = row < p.heads, has_second = row + gate_tile_heads < p.heads;
  const bool two_tiles = p.heads > gate_tile_heads;
  const std::byte* const token = p.hidden_states + (first_token + row) * p.hidden * bytes;
  const std::byte* const token_high = token + std::int64_t{8} * p.hidden * bytes;
  const std::byte* const head = p.gate_weight + std::int64_t{row} * p.row_channels * bytes;
  const std::byte* const second = head + std::int64_t{gate_tile_heads} * p.row_channels * bytes;
  for (int at = ip::warp_index() * gate_chunk; at < p.hidden; at += gate_warps * gate_chunk) {
    const bool inside = at + channel < p.hidden;
    const int byte = (at + channel) * bytes;
    const ip::Vec16 low = load_channels(token + byte, has_low && inside);
    const ip::Vec16 high = load_channels(token_high + byte, has_high && inside);
    const ip::Vec16 b = load_channels(head + byte, has_head && inside);
    multiply_chunk<T>(d[0], low, high, b);
    if (!two_tiles) continue;
    const ip::Vec16 b_second = load_channels(second + byte, has_second && inside);
    multiply_chunk<T>(d[1], low, high, b_second);
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
