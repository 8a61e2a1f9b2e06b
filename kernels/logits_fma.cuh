// logits_fma: logits in f32 on the CUDA cores, for f32 caches (matrix cores would round to tf32).
//
//   logits[row, p] = sum_h w'_h relu(q_h . k_p),  w'_h = head_weights * logit_scale
//
// Shapes. queries [N, H, D], pools [P, D] through the block table, both f32; H from 1 to 64.
//
// Who does what. A block owns 64 pools of one request, kept in shared memory for all rows of a
// query tile; rows come in stages of up to 32 heads, the next stage by cp.async while one is
// multiplied. A warp takes 8 heads of a stage, a lane 2 pools: 16 dot products in registers, keys
// read without bank conflicts, queries by broadcast. The four warps' sums of a row meet in shared
// memory.
//
// Bytes moved per block: 64 D * 4 of keys, rows * H (D + 1) * 4 of queries and head weights,
// rows * 64 * 4 of logits; logits_declared.cpp counts them exactly.
//
// Precision. q . k by fma over d ascending; w' has one rounding; heads of a warp by fma, ascending
// (h, h + 32); then warp 0 + warp 1 + warp 2 + warp 3 by additions from the left.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/logits_checks.hpp"
#include "indexpool/kernels/logits_declared.hpp"
#include "indexpool/kernels/logits_fragments.cuh"
#include "indexpool/kernels/logits_params.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// Copies the keys of a warp's 16 pools to the block's key tile.
template <int D>
IP_DEVICE void gather_f32_pools(const LogitsParams& p, const BlockPlace& place,
                                std::byte* key_tile) {
  constexpr int chunks = D * 4 / 16;
  const int lane = ip::lane_index(), first_row = ip::warp_index() * fma_gathered_pools;
  const std::int64_t first_pool = place.first_pool + first_row;
  const int mine = lane % fma_gathered_pools;
  std::int64_t offset = 0;
  if (first_pool + mine < place.tile.pools)
    offset =
        pool_address<DType::f32, D>(p, place.tile.request, first_pool + mine).codes - p.cache.pages;
  for (int i = lane; i < fma_gathered_pools * chunks; i += 32) {
    const int row = i / chunks, chunk = i % chunks;
    const std::int64_t from = ip::shuffle(ip::full_mask, offset, row);
    if (first_pool + row < place.tile.pools)
      ip::async_copy_16(key_tile + Swizzle<D * 4>::offset(first_row + row, chunk),
                        p.cache.pages + from + chunk * 16);
  }
}

// The heads of a stage: 32 of a row, or what is left of it.
struct FmaStage {
  std::int64_t row;
  int first_head, heads;
};
IP_DEVICE FmaStage fma_stage(const LogitsParams& p, std::int64_t row, int first_head) {
  const int left = p.heads - first_head;
  return {row, first_head, left < fma_stage_heads ? left : fma_stage_heads};
}

template <int D>
IP_DEVICE void fetch_f32_queries(const LogitsParams& p, const FmaStage& stage, std::byte* to) {
  constexpr int chunks = D * 4 / 16;
  const std::byte* const from =
      p.queries + (stage.row * p.heads + stage.first_head) * static_cast<std::int64_t>(D * 4);
  for (int i = ip::thread_index(); i < stage.heads * chunks; i += fma_threads)
    ip::async_copy_16(to + i * 16, from + static_cast<std::int64_t>(i) * 16);
  ip::async_commit();
}

IP_DEVICE float fma_4(const ip::Vec16& a, const ip::Vec16& b, float sum) {
  sum = ip::fma(ip::float_of(a.x), ip::float_of(b.x), sum);
  sum = ip::fma(ip::float_of(a.y), ip::float_of(b.y), sum);
  sum = ip::fma(ip::float_of(a.z), ip::float_of(b.z), sum);
  return ip::fma(ip::float_of(a.w), ip::float_of(b.w), sum);
}

// Adds the warp's heads of a stage to the lane's sums. Heads that do not exist are multiplied from
// whatever lies in the buffer and dropped.
template <int D>
IP_DEVICE void weigh_f32_heads(const std::byte* key_tile, const std::byte* queries,
                               const float* head_weights, int heads,
                               float (&sums)[fma_lane_pools]) {
  constexpr int chunks = D * 4 / 16;
  const int lane = ip::lane_index(), first = ip::warp_index() * fma_warp_heads;
  if (first >= heads) return;
  float dots[fma_warp_heads][fma_lane_pools] = {};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    ip::Vec16 keys[fma_lane_pools];
    for (int j = 0; j < fma_lane_pools; ++j)
      keys[j] = ip::load_shared(reinterpret_cast<const ip::Vec16*>(
          key_tile + Swizzle<D * 4>::offset(lane + 32 * j, chunk)));
    for (int i = 0; i < fma_warp_heads; ++i) {
      const auto query = ip::load_shared(reinterpret_cast<const ip::Vec16*>(queries) +
                                         (first + i) * chunks + chunk);
      for (int j = 0; j < fma_lane_pools; ++j) dots[i][j] = fma_4(query, keys[j], dots[i][j]);
    }
  }
  for (int i = 0; i < fma_warp_heads; ++i) {
    const float weight = ip::load_shared(head_weights + first + i);
    for (int j = 0; j < fma_lane_pools; ++j)
      sums[j] = add_head(sums[j], dots[i][j], weight, first + i < heads);
  }
}

struct FmaParams {
  LogitsParams logits;
  FmaShared shared;
};

// Adds the four warps' sums of a row and stores the visible ones.
IP_DEVICE void store_f32_row(const LogitsParams& p, const BlockPlace& place, std::int64_t row,
                             std::int64_t position, const float* partial_sums) {
  const int thread = ip::thread_index();
  const std::int64_t pool = place.first_pool + thread;
  if (thread >= fma_tile_pools || (pool + 1) * p.index_kpool - 1 > position) return;
  float sum = ip::load_shared(partial_sums + thread);
  for (int warp = 1; warp < fma_warps; ++warp)
    sum = ip::add(sum, ip::load_shared(partial_sums + warp * fma_tile_pools + thread));
  ip::store_global(p.logits + row * p.logits_stride + pool, sum);
}

template <int D>
IP_KERNEL(fma_threads, fma_blocks_per_sm)
void fma_logits(FmaParams params) {
  const LogitsParams& p = params.logits;
  const FmaShared& at = params.shared;
  const BlockPlace place = block_place(p, fma_tile_pools);
  if (place.first_pool >= place.tile.pools) return;

  std::byte* const shared = ip::dynamic_shared();
  const int thread = ip::thread_index(), lane = ip::lane_index();
  const auto queries = [&](int buffer) { return shared + at.queries + buffer * at.query_buffer; };
  const auto floats = [&](int offset) { return reinterpret_cast<float*>(shared + offset); };
  const auto fetch = [&](const FmaStage& stage, int buffer) {  // nothing waits for what it reads
    fetch_f32_queries<D>(p, stage, queries(buffer));
    return fetch_row<false>(p, stage.row, stage.first_head + thread,
                            stage.first_head + stage.heads);
  };
  const auto settle = [&](const FmaStage& stage, int buffer, const FetchedRow& fetched) {
    if (thread < stage.heads)
      ip::store_shared(floats(at.head_weights + buffer * at.head_weights_buffer) + thread,
                       scaled_weight<false>(p, fetched));
    ip::async_wait<0>();
  };

  gather_f32_pools<D>(p, place, shared);
  FmaStage stage = fma_stage(p, place.tile.first_row, 0);
  FetchedRow fetched = fetch(stage, 0);
  settle(stage, 0, fetched);
  ip::sync_block();
  const std::int64_t end = place.tile.first_row + place.tile.rows;
  float sums[fma_lane_pools] = {};
  for (int buffer = 0; stage.row < end; buffer ^= 1) {
    const std::int64_t position = fetched.position;
    const bool last_of_row = stage.first_head + stage.heads == p.heads;
    const FmaStage next = last_of_row ? fma_stage(p, stage.row + 1, 0)
                                      : fma_stage(p, stage.row, stage.first_head + stage.heads);
    if (next.row < end) fetched = fetch(next, buffer ^ 1);
    weigh_f32_heads<D>(shared, queries(buffer),
                       floats(at.head_weights + buffer * at.head_weights_buffer), stage.heads,
                       sums);
    float* const partial_sums = floats(at.partial_sums + buffer * at.partial_sums_buffer);
    if (last_of_row) {
      for (int j = 0; j < fma_lane_pools; ++j) {
        ip::store_shared(partial_sums + ip::warp_index() * fma_tile_pools + lane + 32 * j, sums[j]);
        sums[j] = 0;
      }
    }
    if (next.row < end) settle(next, buffer ^ 1, fetched);
    ip::sync_block();
    if (last_of_row) store_f32_row(p, place, stage.row, position, partial_sums);
    stage = next;
  }
}

inline std::optional<std::string> logits_fma_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<LogitsArgs>(&any);
  if (args == nullptr) return "it computes logits";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  if (args->shape.mode.cache != DType::f32) return "it takes f32 caches only";
  return bad_logits(*args, fma_tile_pools);
}

inline void logits_fma_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<LogitsArgs>(any);
  with_instance(args.shape, [&]<class I>(I) {
    if constexpr (I::cache == DType::f32) {
      const FmaParams params = {make_logits_params(args), fma_shared(I::head_dim)};
      const std::int64_t blocks = args.tile_count * blocks_for(args.max_pools, fma_tile_pools);
      ip_launch(context, blocks, fma_threads, params.shared.bytes, fma_logits<I::head_dim>, params);
    }
  });
}

inline Work logits_fma_work(const OpArgs& any) {
  return declared_fma_logits(std::get<LogitsArgs>(any));
}

inline Accumulation logits_fma_accumulation(const OpArgs&) { return Accumulation::f32_fma; }

extern const Kernel logits_fma;
const Kernel logits_fma = {"logits_fma",      INDEXPOOL_TARGET_NAME, logits_fma_unsupported,
                           logits_fma_launch, logits_fma_work,       logits_fma_accumulation};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
