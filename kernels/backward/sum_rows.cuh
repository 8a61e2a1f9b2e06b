// sum_rows: sums of rows that belong together, always in the same order: gradients of what several
// groups share (a set of weights, a head's gate, biases and norm weights).
//
//   sums[s, c] = sum of values[row j, c] over first[s] <= j < first[s + 1], row j = rows[j] or j
//
// into [-1, 1] when `clip`. values [R, W], sums [segments, W] f32. A warp takes a segment and a
// tile of up to 32 units of four channels (of one where W is no multiple of four); where a row has
// fewer units the warp takes several rows at a time. A lane adds its rows in order, then the lanes
// that have other rows of the same channels by a tree. Plans cut long sums into segments of
// rows_per_segment() and add their sums again. Bytes per row: 4 W and 4 of the list in.
#pragma once

#include <bit>

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/slots.cuh"
#include "indexpool/kernels/paged.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct SumRowsParams {
  const float* values;
  const std::int32_t* rows;
  const std::int64_t* first;
  std::int64_t segments;
  std::int32_t width, tiles, lanes, lanes_log2;
  bool clip;
  float* sums;
};

// `Words` neighbouring f32 as one access.
template <int Words>
IP_DEVICE void load_unit(const float* at, float (&values)[Words]) {
  if constexpr (Words == 4) {
    const auto words = ip::load_global(reinterpret_cast<const ip::Vec16*>(at));
    values[0] = ip::float_of(words.x), values[1] = ip::float_of(words.y);
    values[2] = ip::float_of(words.z), values[3] = ip::float_of(words.w);
  } else {
    values[0] = ip::load_global(at);
  }
}
template <int Words>
IP_DEVICE void store_unit(float* at, const float (&values)[Words]) {
  if constexpr (Words == 4) {
    ip::store_global(reinterpret_cast<ip::Vec16*>(at),
                     ip::Vec16{ip::bits_of(values[0]), ip::bits_of(values[1]),
                               ip::bits_of(values[2]), ip::bits_of(values[3])});
  } else {
    ip::store_global(at, values[0]);
  }
}

template <int Words>
IP_KERNEL(policy_threads, sum_rows_blocks_per_sm)
void sum_rows_kernel(SumRowsParams p) {
  const std::int64_t warp = (ip::block_index() * policy_threads + ip::thread_index()) >> 5;
  if (warp >= p.segments * p.tiles) return;
  const std::int64_t segment = quotient(warp, p.tiles);
  const auto tile = static_cast<std::int32_t>(warp - segment * p.tiles);
  const int column = (tile * p.lanes + (ip::lane_index() & (p.lanes - 1))) * Words;
  const int lane_row = ip::lane_index() >> p.lanes_log2, at_once = 32 >> p.lanes_log2;
  const std::int64_t end = ip::load_global(p.first + segment + 1);
  float sum[Words] = {};
  for (std::int64_t at = ip::load_global(p.first + segment); at < end;
       at += at_once * rows_in_flight) {
    float values[rows_in_flight][Words] = {};
    IP_UNROLL
    for (int k = 0; k < rows_in_flight; ++k) {
      const std::int64_t j = at + k * at_once + lane_row;
      if (j >= end || column >= p.width) continue;
      const std::int64_t row = p.rows == nullptr ? j : std::int64_t{ip::load_global(p.rows + j)};
      load_unit<Words>(p.values + row * p.width + column, values[k]);
    }
    IP_UNROLL
    for (int k = 0; k < rows_in_flight; ++k)
      for (int c = 0; c < Words; ++c) sum[c] = ip::add(sum[c], values[k][c]);
  }
  for (int distance = p.lanes; distance < 32; distance *= 2) {
    IP_UNROLL
    for (int c = 0; c < Words; ++c)
      sum[c] = ip::add(sum[c], ip::shuffle_xor(ip::full_mask, sum[c], distance));
  }
  if (lane_row != 0 || column >= p.width) return;
  if (p.clip)
    for (float& x : sum) x = clipped_to_unit(x);
  store_unit<Words>(p.sums + segment * p.width + column, sum);
}

inline std::optional<std::string> sum_rows_unsupported(const OpArgs& any) {
  const auto* args = backward_args<SumRowsArgs>(any);
  if (args == nullptr) return "it sums rows of gradients";
  return bad_sum_rows(*args);
}

inline void sum_rows_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<SumRowsArgs>(any);
  const int lanes = sum_lanes(args.width);
  const auto tiles = static_cast<std::int32_t>(sum_tiles(args.width));
  const SumRowsParams params = {
      args.values, args.rows, args.first, args.segments,
      args.width,  tiles,     lanes,      std::countr_zero(static_cast<unsigned>(lanes)),
      args.clip,   args.sums};
  const std::int64_t blocks = blocks_for(args.segments * tiles, policy_threads / 32);
  ip_launch(context, blocks, policy_threads, 0,
            words_per_unit(args.width) == 4 ? sum_rows_kernel<4> : sum_rows_kernel<1>, params);
}

inline Work sum_rows_work(const OpArgs& any) {
  return declared_sum_rows(the_backward_args<SumRowsArgs>(any));
}

extern const Kernel sum_rows;
const Kernel sum_rows = {"sum_rows", INDEXPOOL_TARGET_NAME, sum_rows_unsupported, sum_rows_launch,
                         sum_rows_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
