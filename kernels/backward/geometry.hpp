// How the backward pass is dealt to lanes, shared by its kernels and by what they declare.
#pragma once

#include <cstdint>

#include "indexpool/kernels/policy/geometry.hpp"

namespace indexpool::kernels {

// 65,536 registers for a gradient and a row in flight; back through a norm for two of them.
constexpr int pool_backward_blocks_per_sm(int pieces) { return pieces == 8 ? 2 : 4; }
inline constexpr int gate_backward_blocks_per_sm = 4;
// Weights and gradients of all slots of four channels stay in registers.
constexpr int softmax_backward_blocks_per_sm(int capacity) {
  return capacity == 16 ? 3 : capacity == 8 ? 5 : 8;
}
inline constexpr int hidden_backward_blocks_per_sm = 8;

// A query, its gradient and a row in flight.
constexpr int cosine_backward_blocks_per_sm(int pieces) { return pieces >= 4 ? 2 : 4; }

// Terms of weights: lanes hold rows of m as in role_weights, a warp adds up its groups.
inline constexpr int additive_terms = 5, tfidf_terms = 3;
constexpr int groups_per_term_row(int index_kpool) { return 32 / role_lanes(index_kpool); }
constexpr std::int64_t term_row_count(std::int64_t group_count, int index_kpool) {
  return blocks_for(group_count, groups_per_term_row(index_kpool));
}

// Slots whose loads are in flight together where a lane has eight channels of each.
inline constexpr int slots_in_flight = 4;

// sum_rows: a warp adds rows of up to 32 units of 16 bytes, or of 4 where the width is no multiple
// of four; where a row has fewer, several rows at a time. Each lane adds up to `rows_per_lane`.
inline constexpr int sum_rows_blocks_per_sm = 8;
inline constexpr int rows_in_flight = 4, rows_per_lane = 16;
constexpr int words_per_unit(std::int64_t width) { return width % 4 == 0 ? 4 : 1; }
constexpr int sum_lanes(std::int64_t width) {
  int lanes = 1;
  while (lanes < 32 && std::int64_t{lanes} * words_per_unit(width) < width) lanes *= 2;
  return lanes;
}
constexpr std::int64_t sum_tiles(std::int64_t width) {
  return blocks_for(width, std::int64_t{sum_lanes(width)} * words_per_unit(width));
}
// Rows of one segment that keep every lane of its warp busy.
constexpr std::int64_t rows_per_segment(std::int64_t width) {
  return std::int64_t{rows_per_lane} * (32 / sum_lanes(width));
}

}  // namespace indexpool::kernels
