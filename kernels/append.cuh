// append: a decode step. Each request's new tokens, one to a few (speculative drafts), go through
// in position order: if the token closes a pool, pool the ring's last index_kpool - 1 entries and
// the token (pool_math.cuh), then keep the token in the ring.
//
// The token closes its pool from registers and is kept afterwards. A rejected draft needs no
// undoing: its successor overwrites its entry, and a ring of index_kpool + drafts entries
// (ring_size) still holds every position that a pool's second closing reads. One AppendJob per
// request, D / 8 lanes each. A lane reads back only what it wrote itself, so no barrier is needed.
// Bytes per token: 2 D elements in and out; per pool closed 2 (index_kpool - 1) D more in, D codes
// and a scale out.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/declared.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/pool_math.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct AppendParams {
  const void* keys;
  const void* gate_scores;
  const float* ape;
  const AppendJob* jobs;
  std::int64_t job_count;
  const std::int64_t* slots;
  TailRing tail;
  PagedCache cache;
  PoolChecksum* checksums;
  std::int32_t kpool;
};

// Token j of a pool that closes with the current token: an entry of the ring, or that token.
template <class I>
struct RingTokens {
  Ring<I::head_dim, I::storage> ring;
  Piece<I::storage> current_key, current_gate;
  std::int32_t last;  // index_kpool - 1
  std::int32_t byte;

  IP_DEVICE Piece<I::storage> key(int j) const {
    if (j == last) return current_key;
    return load_piece<I::storage>(ring.entry(RingHalf::keys, j) + byte);
  }
  IP_DEVICE Piece<I::storage> gate(int j) const {
    if (j == last) return current_gate;
    return load_piece<I::storage>(ring.entry(RingHalf::gate_scores, j) + byte);
  }
};

template <class I, bool Fast>
IP_DEVICE void append_token(const AppendParams& params, const AppendJob& job, int t, int channel) {
  constexpr int D = I::head_dim;
  const bool active = t < job.tokens;
  const std::int64_t position = job.first_position + t;
  RingTokens<I> tokens = {{}, {}, {}, params.kpool - 1, channel * bytes_of(I::storage)};
  std::int64_t slot = -1;
  if (active) {
    slot = ip::load_global(params.slots + job.first_slot + t);
    const std::int64_t row = job.first_row + t;
    tokens.current_key =
        load_piece<I::storage>(row_at<D, I::storage>(params.keys, row) + tokens.byte);
    tokens.current_gate =
        load_piece<I::storage>(row_at<D, I::storage>(params.gate_scores, row) + tokens.byte);
  }
  const bool closes = slot >= 0;
  if (ip::ballot(ip::full_mask, closes) != 0) {
    if (closes)
      tokens.ring = ring_at<D, I::storage>(params.tail, job.tail_block, position - tokens.last);
    float y[channels_per_lane];
    pool_tokens<I, Fast>(tokens, params.ape + channel, params.kpool, closes, y);
    finish_pool<I>(y, params.cache, slot,
                   params.checksums == nullptr ? nullptr : params.checksums + job.first_slot + t,
                   channel, closes);
  }
  if (active) {
    const auto here = ring_at<D, I::storage>(params.tail, job.tail_block, position);
    store_piece(here.entry(RingHalf::keys, 0) + tokens.byte, tokens.current_key);
    store_piece(here.entry(RingHalf::gate_scores, 0) + tokens.byte, tokens.current_gate);
  }
}

template <class I, bool Fast>
IP_KERNEL(append_threads, append_blocks_per_sm)
void append_kernel(AppendParams params) {
  constexpr int lanes = lanes_of(I::head_dim);
  const std::int64_t index = (ip::block_index() * append_threads + ip::thread_index()) / lanes;
  const int channel = ip::thread_index() % lanes * channels_per_lane;
  AppendJob job = {};  // lanes without a request stay for the votes and shuffles of their warp
  if (index < params.job_count) job = load_record(params.jobs + index);
  for (int t = 0; ip::ballot(ip::full_mask, t < job.tokens) != 0; ++t)
    append_token<I, Fast>(params, job, t, channel);
}

inline std::optional<std::string> append_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<AppendArgs>(&any);
  if (args == nullptr) return "it appends a decode step";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  if (auto reason = bad_kpool(args->shape.config)) return reason;
  if (auto reason = bad_cache(args->cache)) return reason;
  return bad_ring(args->tail, args->shape.config);
}

inline void append_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<AppendArgs>(any);
  const AppendParams params = {
      args.keys,      args.gate_scores,
      args.ape,       args.jobs,
      args.job_count, args.slots,
      args.tail,      args.cache,
      args.checksums, static_cast<std::int32_t>(args.shape.config.index_kpool)};
  with_instance(args.shape, [&]<class I>(I) {
    const int requests_per_block = append_threads / lanes_of(I::head_dim);
    const bool fast = params.kpool == tokens_in_flight;
    ip_launch(context, blocks_for(args.job_count, requests_per_block), append_threads, 0,
              fast ? append_kernel<I, true> : append_kernel<I, false>, params);
  });
}

inline Work append_work(const OpArgs& any) { return declared_append(std::get<AppendArgs>(any)); }

extern const Kernel append;
const Kernel append = {"append", INDEXPOOL_TARGET_NAME, append_unsupported, append_launch,
                       append_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
