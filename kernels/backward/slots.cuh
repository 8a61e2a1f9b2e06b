// A lane's channels of gradients, as f32, and where they lie by slot.
#pragma once

#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <int Pieces>
struct LaneChannels {
  float of[Pieces][channels_per_lane] = {};
};

// Of a row of f32, first channel of the row at `row`.
template <int Pieces>
IP_DEVICE LaneChannels<Pieces> load_channels(const float* row, int lane) {
  LaneChannels<Pieces> values;
  const auto loaded = load_row<DType::f32, Pieces>(reinterpret_cast<const std::byte*>(row), lane);
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p) unpack<DType::f32>(loaded.piece[p], values.of[p]);
  return values;
}
IP_DEVICE void store_lane_piece(float* row, int piece, int lane,
                                const float (&values)[channels_per_lane]) {
  float* const at = row + piece * piece_channels + lane * channels_per_lane;
  store_piece<DType::f32>(reinterpret_cast<std::byte*>(at), pack<DType::f32>(values));
}

// First channel of slot (group, i) of [G, m, D].
IP_DEVICE std::int64_t slot_of(const GroupParams& p, std::int64_t group, int i) {
  return (group * p.index_kpool + i) * p.head_dim;
}

// Into [-1, 1]; what is inside keeps its bits.
IP_DEVICE float clipped_to_unit(float x) {
  if (x >= -1.0f && x <= 1.0f) return x;
  return x > 0.0f ? 1.0f : -1.0f;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
