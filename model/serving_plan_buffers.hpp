// Work buffers of a serving engine: how large they are, how rows are cut to fit a budget, and what
// a caching allocator keeps of them. Sizes in rows, pools (states) and bytes; f32 logits.
//
// Every function throws ConfigError for negative sizes and for results beyond 63 bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/model/units.hpp"

namespace indexpool::serving {

// Columns of a row of logits for `pools` pools: a multiple of 256 (DeepGEMM and SGLang align so).
std::int64_t logits_columns(std::int64_t pools);
// rows x columns x 4 B.
Bytes logits_bytes(std::int64_t rows, std::int64_t columns);
// What DeepGEMM allocates for a prefill: rows up to a multiple of 128 / heads, and
// align(pools + 256, 256) columns (csrc/apis/attention.hpp).
Bytes deepgemm_prefill_logits_bytes(std::int64_t rows, std::int64_t pools, std::int64_t heads);

// Rows [first, first + rows) of a step.
struct RowChunk {
  std::int64_t first = 0, rows = 0;
  bool operator==(const RowChunk&) const = default;
};
// Cuts `rows` rows of `columns` logits into chunks of equal height (the last may be lower) whose
// logits fit `budget`. Throws when not even one row fits.
// The budget is on rows x columns: a bound on either alone is none (vllm-project/vllm#36178).
std::vector<RowChunk> chunk_rows(std::int64_t rows, std::int64_t columns, Bytes budget);
// vLLM's VLLM_SPARSE_INDEXER_MAX_LOGITS_MB.
inline constexpr Bytes default_logits_budget{std::int64_t{512} << 20};

// States that a prefill gathers at most: vLLM's bound of 40 contexts of max_model_len tokens
// (get_max_prefill_buffer_size), in pools.
inline constexpr std::int64_t prefill_gather_contexts = 40;
std::int64_t gather_states(std::int64_t max_model_len, std::int64_t index_kpool);
Bytes gather_workspace_bytes(std::int64_t states, Bytes state);

// Columns of the logits of a decode step: pools of the longest context, not its tokens.
std::int64_t decode_logits_columns(std::int64_t max_model_len, std::int64_t index_kpool);
// Query rows that a decode step has at most: each sequence its token and its drafts.
std::int64_t decode_rows(std::int64_t max_sequences, std::int64_t drafts);

// What a caching allocator holds after serving `sizes` one after another, each freed before the
// next: the smallest free block that is large enough is used again, else a new one is reserved, and
// none is given back (PyTorch's CUDACachingAllocator, sizes up to a multiple of 2 MiB).
struct AllocatorUse {
  Bytes reserved;                   // in the end
  Bytes largest;                    // of one request, rounded
  std::int64_t blocks = 0;          // reserved
  std::int64_t distinct_sizes = 0;  // asked for, after rounding
};
AllocatorUse simulate_caching_allocator(std::span<const Bytes> sizes);
// Logits of a prompt's chunks of `chunk_tokens` rows, each as wide as its context (growing), or as
// wide as the whole prompt (fixed): bytes by chunk.
enum class LogitsWidth { growing, fixed };
std::vector<Bytes> prompt_logits(std::int64_t tokens, std::int64_t chunk_tokens,
                                 std::int64_t index_kpool, LogitsWidth width);

}  // namespace indexpool::serving
