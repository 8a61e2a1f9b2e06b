// pool: closes the pools of a prefill step.
//
//   key_p = quantise(rotate(softmax-weighted sum of the pool's keys))   (pool_math.cuh)
//
// keys, gate scores [N, D] in the storage dtype, ape [index_kpool, D] f32; one PoolJob per pool.
// D / 8 neighbouring lanes hold a pool, eight channels each (D = 128: two pools a warp); warps and
// blocks know nothing of each other. Bytes per pool: 2 index_kpool D elements in, D codes and a
// scale out; ape comes from the cache once per warp.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/declared.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/pool_math.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct PoolParams {
  const void* keys;
  const void* gate_scores;
  const float* ape;
  const PoolJob* jobs;
  std::int64_t job_count;
  TailRing tail;
  PagedCache cache;
  PoolChecksum* checksums;
  std::int32_t kpool;
};

// Token j of a pool: an entry of the ring while j < carried, else a row of this step.
template <class I>
struct PoolTokens {
  const void* keys;
  const void* gate_scores;
  Ring<I::head_dim, I::storage> ring;
  std::int64_t first_row;  // of token 0, had it come with this step
  std::int32_t carried;
  std::int32_t byte;  // of this lane's first channel in a row

  IP_DEVICE const std::byte* at(RingHalf half, const void* rows, int j) const {
    const std::byte* row =
        j < carried ? ring.entry(half, j) : row_at<I::head_dim, I::storage>(rows, first_row + j);
    return row + byte;
  }
  IP_DEVICE Piece<I::storage> key(int j) const {
    return load_piece<I::storage>(at(RingHalf::keys, keys, j));
  }
  IP_DEVICE Piece<I::storage> gate(int j) const {
    return load_piece<I::storage>(at(RingHalf::gate_scores, gate_scores, j));
  }
};

template <class I, bool Fast>
IP_KERNEL(pool_threads, pool_blocks_per_sm(I::storage))
void pool_kernel(PoolParams params) {
  constexpr int lanes = lanes_of(I::head_dim);
  const std::int64_t thread = ip::block_index() * pool_threads + ip::thread_index();
  const std::int64_t first_of_warp = (thread - ip::lane_index()) / lanes;
  if (first_of_warp >= params.job_count) return;  // the whole warp
  const std::int64_t index = thread / lanes;
  const bool active = index < params.job_count;
  const int channel = ip::thread_index() % lanes * channels_per_lane;

  PoolJob job = {};
  if (active) job = load_record(params.jobs + index);
  PoolTokens<I> tokens = {params.keys, params.gate_scores,
                          {},          job.last_row - (params.kpool - 1),
                          job.carried, channel * bytes_of(I::storage)};
  if (job.carried > 0)
    tokens.ring = ring_at<I::head_dim, I::storage>(params.tail, job.tail_block, job.first_position);
  float y[channels_per_lane];
  pool_tokens<I, Fast>(tokens, params.ape + channel, params.kpool, active, y);
  finish_pool<I>(y, params.cache, job.slot,
                 params.checksums == nullptr ? nullptr : params.checksums + index, channel, active);
}

inline std::optional<std::string> pool_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<PoolArgs>(&any);
  if (args == nullptr) return "it pools";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  if (auto reason = bad_kpool(args->shape.config)) return reason;
  if (auto reason = bad_cache(args->cache)) return reason;
  return args->tail.base == nullptr ? std::nullopt : bad_ring(args->tail, args->shape.config);
}

inline void pool_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<PoolArgs>(any);
  const PoolParams params = {
      args.keys,  args.gate_scores, args.ape,
      args.jobs,  args.job_count,   args.tail,
      args.cache, args.checksums,   static_cast<std::int32_t>(args.shape.config.index_kpool)};
  with_instance(args.shape, [&]<class I>(I) {
    const std::int64_t blocks = blocks_for(args.job_count, pool_threads / lanes_of(I::head_dim));
    const bool fast = params.kpool == tokens_in_flight;
    ip_launch(context, blocks, pool_threads, 0, fast ? pool_kernel<I, true> : pool_kernel<I, false>,
              params);
  });
}

inline Work pool_work(const OpArgs& any) { return declared_pool(std::get<PoolArgs>(any)); }

extern const Kernel pool;
const Kernel pool = {"pool", INDEXPOOL_TARGET_NAME, pool_unsupported, pool_launch, pool_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
