// Work buffers: logits, gather workspaces, and what an allocator keeps.
#include "indexpool/model/serving_plan_buffers.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "indexpool/model/serving_plan_sizes.hpp"

namespace indexpool::serving {
namespace {

constexpr std::int64_t logit_bytes = 4;         // f32
constexpr std::int64_t column_alignment = 256;  // 1024 B
constexpr std::int64_t allocator_grain = std::int64_t{2} << 20;

}  // namespace

std::int64_t logits_columns(std::int64_t pools) {
  at_least("pools", pools, 0);
  return round_up(pools, column_alignment, "columns of the logits");
}

Bytes logits_bytes(std::int64_t rows, std::int64_t columns) {
  at_least("rows", rows, 0);
  at_least("columns", columns, 0);
  return Bytes(checked_product(checked_product(rows, columns, "logits"), logit_bytes,
                               "bytes of the logits"));
}

Bytes deepgemm_prefill_logits_bytes(std::int64_t rows, std::int64_t pools, std::int64_t heads) {
  constexpr std::int64_t tile = 128;  // rows x heads of a tile
  at_least("rows", rows, 0);
  at_least("pools", pools, 0);
  at_least("heads", heads, 1);
  const std::int64_t rows_of_tile = std::max<std::int64_t>(1, tile / heads);
  return logits_bytes(round_up(rows, rows_of_tile, "rows of the logits"),
                      logits_columns(checked_sum(pools, column_alignment, "columns")));
}

std::vector<RowChunk> chunk_rows(std::int64_t rows, std::int64_t columns, Bytes budget) {
  at_least("rows", rows, 0);
  const Bytes row = logits_bytes(1, columns);
  if (row > budget)
    throw ConfigError(fmt::format("one row of {} logits takes {} B, more than the budget of {} B",
                                  columns, row.value, budget.value));
  const std::int64_t height = row.value == 0 ? rows : budget.value / row.value;
  std::vector<RowChunk> chunks;
  for (std::int64_t first = 0; first < rows;) {
    chunks.push_back({first, std::min(height, rows - first)});
    first += chunks.back().rows;
  }
  return chunks;
}

std::int64_t gather_states(std::int64_t max_model_len, std::int64_t index_kpool) {
  at_least("max_model_len", max_model_len, 0);
  at_least("index_kpool", index_kpool, 1);
  return checked_product(max_model_len / index_kpool, prefill_gather_contexts,
                         "states of the gather workspace");
}

Bytes gather_workspace_bytes(std::int64_t states, Bytes state) {
  at_least("states", states, 0);
  at_least("bytes of a state", state.value, 0);
  return Bytes(checked_product(states, state.value, "bytes of the gather workspace"));
}

std::int64_t decode_logits_columns(std::int64_t max_model_len, std::int64_t index_kpool) {
  at_least("max_model_len", max_model_len, 0);
  at_least("index_kpool", index_kpool, 1);
  return max_model_len / index_kpool;
}

std::int64_t decode_rows(std::int64_t max_sequences, std::int64_t drafts) {
  at_least("max_sequences", max_sequences, 0);
  at_least("drafts", drafts, 0);
  return checked_product(max_sequences, checked_sum(drafts, 1, "rows of a sequence"),
                         "rows of a decode step");
}

AllocatorUse simulate_caching_allocator(std::span<const Bytes> sizes) {
  AllocatorUse use;
  std::multiset<std::int64_t> free_blocks;
  std::set<std::int64_t> distinct;
  for (const Bytes size : sizes) {
    at_least("bytes asked for", size.value, 0);
    const std::int64_t rounded = round_up(size.value, allocator_grain, "bytes asked for");
    distinct.insert(rounded);
    use.largest = std::max(use.largest, Bytes(rounded));
    if (free_blocks.lower_bound(rounded) != free_blocks.end()) continue;  // used and freed again
    free_blocks.insert(rounded);
    ++use.blocks;
    use.reserved = Bytes(checked_sum(use.reserved.value, rounded, "bytes reserved"));
  }
  use.distinct_sizes = static_cast<std::int64_t>(distinct.size());
  return use;
}

std::vector<Bytes> prompt_logits(std::int64_t tokens, std::int64_t chunk_tokens,
                                 std::int64_t index_kpool, LogitsWidth width) {
  at_least("tokens", tokens, 0);
  at_least("chunk_tokens", chunk_tokens, 1);
  at_least("index_kpool", index_kpool, 1);
  std::vector<Bytes> sizes;
  for (std::int64_t first = 0; first < tokens; first += chunk_tokens) {
    const std::int64_t rows = std::min(chunk_tokens, tokens - first);
    const std::int64_t context = width == LogitsWidth::fixed ? tokens : first + rows;
    sizes.push_back(logits_bytes(rows, logits_columns(context / index_kpool)));
  }
  return sizes;
}

}  // namespace indexpool::serving
