// block_max: the largest score of each block of tokens.
//
//   maxima[row, b] = max of scores[row, b block ... (b + 1) block), the last block may be shorter
//
// NaN never wins; a block of NaN alone gives -infinity; +0 beats -0. scores [rows, stride], maxima
// [rows, ceil(tokens / block)] f32. A warp takes eight neighbouring blocks of a row, each by all 32
// lanes, 16 bytes a lane and step, all eight in flight; then the eight maxima and the 32 lanes are
// reduced together, an exchange halving both, until eight lanes store one maximum each. Made for
// blocks of 128 scores and more; shorter ones leave lanes idle. Bytes: 4 a score in (whole vectors:
// up to three columns beyond `tokens` are read and ignored), 4 a block out.
#pragma once

#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/geometry.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct BlockMaxParams {
  const float* scores;
  std::int64_t rows, tokens, stride, blocks;  // blocks of a row
  std::int32_t block, warps_per_row;
  float* maxima;
};

// This lane's shares of eight neighbouring blocks, from `first` on. The first 128 scores of all
// blocks are in flight together, then the next.
IP_DEVICE void lane_maxima(const BlockMaxParams& p, const float* row, std::int64_t first,
                           float (&maxima)[maxima_per_warp]) {
  for (float& largest : maxima) largest = ip::float_of(0xff800000u);  // -infinity
  for (std::int32_t step = 0; step < p.block; step += block_max_step) {
    const std::int32_t offset = step + 4 * ip::lane_index();
    ip::Vec16 scores[maxima_per_warp];
    IP_UNROLL
    for (int j = 0; j < maxima_per_warp; ++j) {
      const std::int64_t at = first + j * std::int64_t{p.block} + offset;
      scores[j] = {0xff800000u, 0xff800000u, 0xff800000u, 0xff800000u};
      if (offset < p.block && at < p.tokens)
        scores[j] = ip::load_global(reinterpret_cast<const ip::Vec16*>(row + at));
    }
    IP_UNROLL
    for (int j = 0; j < maxima_per_warp; ++j) {
      const std::int64_t left = p.tokens - (first + j * std::int64_t{p.block} + offset);
      const std::uint32_t words[4] = {scores[j].x, scores[j].y, scores[j].z, scores[j].w};
      IP_UNROLL
      for (int i = 0; i < 4; ++i)
        if (i < left) maxima[j] = ip::max_number(maxima[j], ip::float_of(words[i]));
    }
    ip::sync_warp();  // the lanes of a load stay together
  }
}

// Lane 4 j (+ 0 ... 3) ends with the maximum of block j.
IP_DEVICE float exchange_maxima(float (&m)[maxima_per_warp]) {
  const int lane = ip::lane_index();
  IP_UNROLL
  for (int half = maxima_per_warp / 2, distance = 16; half > 0; half /= 2, distance /= 2) {
    const bool upper = (lane & distance) != 0;
    IP_UNROLL
    for (int i = 0; i < maxima_per_warp / 2; ++i) {
      if (i >= half) break;
      const float mine = upper ? m[half + i] : m[i], theirs = upper ? m[i] : m[half + i];
      m[i] = ip::max_number(mine, ip::shuffle_xor(ip::full_mask, theirs, distance));
    }
  }
  for (int distance = 2; distance > 0; distance /= 2)
    m[0] = ip::max_number(m[0], ip::shuffle_xor(ip::full_mask, m[0], distance));
  return m[0];
}

template <int Threads>
IP_KERNEL(Threads, block_max_blocks_per_sm)
void block_max_kernel(BlockMaxParams p) {
  const std::int64_t warp = ip::block_index() * (Threads / 32) + ip::warp_index();
  const std::int64_t row = quotient(warp, p.warps_per_row);
  if (row >= p.rows) return;
  const std::int64_t first_block = (warp - row * p.warps_per_row) * maxima_per_warp;
  const float* const scores = p.scores + row * p.stride;
  float maxima[maxima_per_warp];
  lane_maxima(p, scores, first_block * p.block, maxima);
  const float largest = exchange_maxima(maxima);
  const std::int64_t block = first_block + ip::lane_index() / 4;
  if (ip::lane_index() % 4 == 0 && block < p.blocks)
    ip::store_global(p.maxima + row * p.blocks + block, largest);
}

inline std::optional<std::string> block_max_unsupported(const OpArgs& any) {
  const auto* args = policy_args<BlockMaxArgs>(any);
  if (args == nullptr) return "it takes maxima of scores";
  return bad_block_max(*args);
}

inline void block_max_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<BlockMaxArgs>(any);
  const std::int64_t blocks = blocks_for(args.tokens, args.block);
  const std::int64_t warps_per_row = blocks_for(blocks, maxima_per_warp);
  const BlockMaxParams params = {args.scores,
                                 args.rows,
                                 args.tokens,
                                 args.stride,
                                 blocks,
                                 args.block,
                                 static_cast<std::int32_t>(warps_per_row),
                                 args.maxima};
  const std::int64_t warps = args.rows * warps_per_row;
  ip_launch(context, blocks_for(warps, policy_threads / 32), policy_threads, 0,
            block_max_kernel<policy_threads>, params);
}

inline Work block_max_work(const OpArgs& any) {
  return declared_block_max(the_policy_args<BlockMaxArgs>(any));
}

extern const Kernel block_max;
const Kernel block_max = {"block_max", INDEXPOOL_TARGET_NAME, block_max_unsupported,
                          block_max_launch, block_max_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
