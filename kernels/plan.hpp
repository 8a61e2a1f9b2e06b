// Host-side planning: which pools a step closes, where they go, what stays in the tail ring.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// Bytes of one planar page and offsets inside it.
struct PageLayout {
  std::int64_t states = 64, head_dim = 128;
  DType cache = DType::e4m3;
  bool scales = true;
  std::int64_t code_bytes() const;    // of one state
  std::int64_t scale_offset() const;  // of the first scale in a page
  // Whole 32-byte sectors: rounded up when states * (code_bytes + 4) is not a multiple of 32.
  std::int64_t page_bytes() const;
};
PageLayout page_layout(const Shape& shape, std::int64_t states_per_page);

// Slot of pool p of a request: block_table[p / states] * states + p % states. 64-bit throughout.
// Throws ConfigError when the table is too short or holds a negative page.
std::int64_t pool_slot(std::span<const std::int32_t> block_table, std::int64_t states_per_page,
                       std::int64_t pool);
// Smallest ring for `drafts` speculative tokens: index_kpool * next_pow2(ceil((index_kpool +
// drafts) / index_kpool)) (vLLM's rule; at least index_kpool + drafts).
std::int64_t ring_size(std::int64_t index_kpool, std::int64_t drafts);

// A request's part of a step: tokens at positions [start, start + tokens), rows from first_row on.
struct StepRequest {
  std::int64_t start = 0, tokens = 0, first_row = 0;
  std::int32_t tail_block = 0;
  std::span<const std::int32_t> block_table;
};
struct PrefillPlan {
  std::vector<PoolJob> pools;
  std::vector<TailJob> tails;  // the last min(tokens, ring) rows of each request
};
PrefillPlan plan_prefill(std::span<const StepRequest> step, std::int64_t index_kpool,
                         std::int64_t states_per_page, std::int64_t ring);
struct AppendPlan {
  std::vector<AppendJob> jobs;
  std::vector<std::int64_t> slots;  // by token of the step, -1 where no pool closes
  std::int64_t pools_closed = 0, tokens = 0;
};
AppendPlan plan_append(std::span<const StepRequest> step, std::int64_t index_kpool,
                       std::int64_t states_per_page);

// Rows that share one pass over a pool tile: the tile's gather and conversion are paid once for 32.
inline constexpr std::int64_t query_rows_per_tile = 32;
// Tiles of at most `rows_per_tile` consecutive rows of one request.
std::vector<QueryTile> plan_query_tiles(std::span<const QueryRow> rows, std::int64_t index_kpool,
                                        std::int64_t rows_per_tile);

// The functions above that decide where a step's rows go, so that another plan can take their
// place: an engine's, or one with a fault.
struct Planner {
  std::int64_t (*ring)(std::int64_t index_kpool, std::int64_t drafts) = ring_size;
  PrefillPlan (*prefill)(std::span<const StepRequest> step, std::int64_t index_kpool,
                         std::int64_t states_per_page, std::int64_t ring) = plan_prefill;
  AppendPlan (*append)(std::span<const StepRequest> step, std::int64_t index_kpool,
                       std::int64_t states_per_page) = plan_append;
  std::vector<QueryTile> (*query_tiles)(std::span<const QueryRow> rows, std::int64_t index_kpool,
                                        std::int64_t rows_per_tile) = plan_query_tiles;
};

}  // namespace indexpool::kernels
