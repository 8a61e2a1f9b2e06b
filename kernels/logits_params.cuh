// What the logits kernels share: their parameters on the device, and where a pool lies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// LogitsArgs without what only the host reads.
struct LogitsParams {
  const std::byte* queries;
  const float* query_scales;
  const float* head_weights;
  float logit_scale;
  std::int32_t heads;
  std::int32_t index_kpool;
  std::int32_t tile_count;
  const QueryRow* rows;
  const QueryTile* tiles;
  PagedCache cache;
  const std::int32_t* block_table;
  std::int64_t block_table_width;
  float* logits;
  std::int64_t logits_stride;
};

inline LogitsParams make_logits_params(const LogitsArgs& args) {
  const IndexerConfig& config = args.shape.config;
  return {static_cast<const std::byte*>(args.queries), args.query_scales, args.head_weights,
          args.logit_scale, static_cast<std::int32_t>(config.index_n_heads),
          // A pool of more tokens than 2^31 - 1 closes at no position an int32 selection can hold.
          static_cast<std::int32_t>(
              std::min<std::int64_t>(config.index_kpool, std::numeric_limits<std::int32_t>::max())),
          static_cast<std::int32_t>(args.tile_count), args.rows, args.tiles, args.cache,
          args.block_table, args.block_table_width, args.logits, args.logits_stride};
}

// Which query tile and which pools a block works on. Neighbouring blocks share pools, so that the
// tiles of one request find them in L2.
struct BlockPlace {
  QueryTile tile;
  std::int64_t first_pool;
};
IP_DEVICE BlockPlace block_place(const LogitsParams& p, int tile_pools) {
  const std::int64_t block = ip::block_index();
  const std::int64_t pool_tile = quotient(block, p.tile_count);
  return {load_record(p.tiles + (block - pool_tile * p.tile_count)), pool_tile * tile_pools};
}

// Codes and scale of `pool` of a request, through the block table.
template <DType Cache, int D>
IP_DEVICE StateAddress pool_address(const LogitsParams& p, std::int64_t request,
                                    std::int64_t pool) {
  const std::int64_t column = quotient(pool, p.cache.states_per_page);
  const std::int64_t state = pool - column * p.cache.states_per_page;
  const std::int64_t page = ip::load_global(p.block_table + request * p.block_table_width + column);
  constexpr std::int64_t code_bytes = static_cast<std::int64_t>(D) * bytes_of(Cache);
  std::byte* const base = p.cache.pages + page * p.cache.page_stride;
  std::byte* const scales = base + p.cache.states_per_page * code_bytes;
  return {base + state * code_bytes, reinterpret_cast<float*>(scales) + state};
}

// relu that keeps NaN: a pool that holds one must not look like one that scored zero.
IP_DEVICE float relu(float value) { return value < 0.0f ? 0.0f : value; }

// What one head adds to a pool's logit; nothing when the head is padding.
IP_DEVICE float add_head(float sum, float dot, float weight, bool exists) {
  return exists ? ip::fma(relu(dot), weight, sum) : sum;
}

// What a thread reads of a row before it is needed.
struct FetchedRow {
  std::int64_t position;
  float head_weight, query_scale;  // of the thread's head, if it has one
};
template <bool Quantised>
IP_DEVICE FetchedRow fetch_row(const LogitsParams& p, std::int64_t row, int head, int heads) {
  FetchedRow fetched = {ip::load_global(&p.rows[row].position), 0, 0};
  if (head < heads) {
    fetched.head_weight = ip::load_global(p.head_weights + row * p.heads + head);
    if constexpr (Quantised)
      fetched.query_scale = ip::load_global(p.query_scales + row * p.heads + head);
  }
  return fetched;
}

// head_weights * logit_scale * query_scale, one rounding each.
template <bool Quantised>
IP_DEVICE float scaled_weight(const LogitsParams& p, const FetchedRow& fetched) {
  const float weight = ip::mul(fetched.head_weight, p.logit_scale);
  if constexpr (Quantised) return ip::mul(weight, fetched.query_scale);
  return weight;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
