// How groups of vectors are dealt to lanes, shared by the kernels of the published forms and by
// what they declare.
//
// A group of D channels lies in D / 8 neighbouring lanes, eight channels each; beyond 256 channels
// a whole warp holds it in pieces: piece p of lane l are channels 256 p + 8 l and the next seven,
// so that every load of a warp is one stretch of memory.
#pragma once

#include <cstdint>

#include "indexpool/kernels/geometry.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

inline constexpr int smallest_policy_dim = 32, largest_policy_dim = 2048;
inline constexpr int piece_channels = 32 * channels_per_lane;  // of a warp

constexpr int pieces_of(std::int64_t head_dim) {
  return head_dim <= piece_channels ? 1 : static_cast<int>(head_dim / piece_channels);
}
constexpr int group_lanes(std::int64_t head_dim) {
  return head_dim <= piece_channels ? static_cast<int>(head_dim / channels_per_lane) : 32;
}
// Vectors whose loads are in flight together: 64 bytes of 16-bit channels a lane, or one vector.
constexpr int vectors_in_flight(int pieces) { return pieces >= 4 ? 1 : 4 / pieces; }

inline constexpr int policy_threads = 128;
// Blocks that the launch bounds promise per SM: 65,536 registers for sums and rows in flight.
constexpr int policy_pool_blocks_per_sm(int pieces) { return pieces == 8 ? 2 : 4; }
constexpr int dot_blocks_per_sm(int pieces) { return pieces == 8 ? 3 : pieces == 4 ? 5 : 6; }

// channel_weights: four channels a lane, 16 bytes of the weights it stores.
inline constexpr int quad_channels = 4;
// Vectors whose scores stay in registers: the instances.
constexpr int channel_capacity(int index_kpool) {
  return index_kpool <= 4 ? 4 : index_kpool <= 8 ? 8 : 16;
}
constexpr int channel_blocks_per_sm(int capacity) { return capacity == 16 ? 4 : 8; }

// hidden_gates: 16 tokens a block, whose warps take turns at 32 channels.
inline constexpr int gate_tokens = 16, gate_warps = 8, gate_threads = 32 * gate_warps;
inline constexpr int gate_chunk = 32, gate_tile_heads = 8, most_gate_heads = 16;
inline constexpr int gate_blocks_per_sm = 4;
constexpr int gate_tiles(int heads) { return heads > gate_tile_heads ? 2 : 1; }
// A fragment of 16 x 8 sums, one for each warp and tile.
inline constexpr int gate_fragment = gate_tokens * gate_tile_heads;
constexpr std::int64_t gate_shared_bytes(int heads) {
  return std::int64_t{gate_warps} * gate_tiles(heads) * gate_fragment * 4;
}

// block_max: a warp takes eight blocks of a row, so that it stores one sector.
inline constexpr int maxima_per_warp = 8;
inline constexpr int block_max_step = 128;  // scores of a warp's load
inline constexpr int block_max_blocks_per_sm = 8;

// role_weights: lanes of a row of m weights, a power of two.
constexpr int role_lanes(int index_kpool) {
  int lanes = 1;
  while (lanes < index_kpool) lanes *= 2;
  return lanes;
}
inline constexpr int role_blocks_per_sm = 8;

}  // namespace indexpool::kernels
