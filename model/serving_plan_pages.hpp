// Where a serving engine keeps pooled keys and tails: blocks, pages, tables, slots, addresses.
//
// Units: a token is a position of a sequence, a state is one pooled key (index_kpool tokens), a
// page is what a kernel addresses, a block is what the engine's manager hands out. All 64-bit;
// every function throws ConfigError for sizes below their least value and for results beyond 63
// bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/model/units.hpp"

namespace indexpool::serving {

// Source: vLLM, Glm5NextIndexerCache (models/glm5next/common/attention.py).
struct PageGeometry {
  std::int64_t block_tokens = 0;     // of the manager's block
  std::int64_t block_states = 0;     // block_tokens / index_kpool
  std::int64_t page_states = 0;      // of the kernel's page: 32 or 64
  std::int64_t pages_per_block = 0;  // block_states / page_states
};
// block_tokens must be a multiple of index_kpool, and block_tokens / index_kpool one of 32: the
// kernels take pages of 32 or 64 states (deepseek-ai/DeepGEMM#314). A block of at most 64 states is
// one page; a larger one is cut into pages of 64 where they tile it, else of 32.
PageGeometry page_geometry(std::int64_t block_tokens, std::int64_t index_kpool);
bool kernel_takes_page(std::int64_t page_states);

// Columns of a block table whose entries are pages of `page_states` states: those that `tokens`
// tokens fill.
std::int64_t table_columns(std::int64_t tokens, std::int64_t index_kpool, std::int64_t page_states);
// How far a table of `columns` pages reaches: states, and tokens.
std::int64_t reach_states(std::int64_t columns, std::int64_t page_states);
std::int64_t reach_tokens(std::int64_t columns, std::int64_t page_states, std::int64_t index_kpool);

// A table of the manager's blocks as the kernels need it: block b is pages b * pages_per_block ...
std::vector<std::int32_t> table_in_pages(std::span<const std::int32_t> blocks,
                                         std::int64_t pages_per_block);
// Slot of state `pool` of a request: table[pool / page_states] * page_states + pool % page_states.
// Throws when the table is too short or holds a negative page.
std::int64_t pool_slot(std::span<const std::int32_t> table, std::int64_t page_states,
                       std::int64_t pool);
// The same where the cache is allocated by pages of tokens, and the pools of index_kpool
// neighbouring token pages share the first: table[pool / page * index_kpool] * page + pool % page.
// Source: SGLang, dsa/kpool_fp8_index.py.
std::int64_t token_page_slot(std::span<const std::int32_t> token_pages, std::int64_t page_tokens,
                             std::int64_t index_kpool, std::int64_t pool);
// Pools that may be read at the query position: those whose last token is not after it.
std::int64_t visible_pools(std::int64_t position, std::int64_t index_kpool);

// Entries of a request's tail ring for `drafts` speculative tokens: the smallest index_kpool * 2^n
// that holds an open pool and every draft that may be rejected (vLLM: 4 * next_pow2(ceil((4 +
// drafts) / 4))).
std::int64_t tail_ring(std::int64_t index_kpool, std::int64_t drafts);
// Bytes that a tail block fills: keys and gate scores of `ring` tokens. The distance between blocks
// may be larger: it belongs to the view (38,016 B in vllm-project/vllm#57477, for 2048 B filled).
Bytes tail_block_bytes(std::int64_t ring, std::int64_t head_dim, std::int64_t element_bytes);
// Ring entry of a position, of all blocks: block * ring + position % ring.
std::int64_t tail_slot(std::int64_t block, std::int64_t ring, std::int64_t position);

// A state: codes and its scale; a planar page of them, and the byte offsets of a slot's parts.
Bytes state_bytes(std::int64_t head_dim, std::int64_t code_bytes, std::int64_t scale_bytes);
struct StateOffsets {
  std::int64_t codes = 0, scale = 0;  // bytes from the cache's start
};
// Planar pages: [page_states x head_dim codes of 1 byte][page_states x f32 scale], `page_stride`
// bytes apart.
StateOffsets planar_offsets(std::int64_t slot, std::int64_t page_states, std::int64_t head_dim,
                            std::int64_t page_stride);
// index * stride, exact. Elements or bytes, as the stride says.
std::int64_t strided_offset(std::int64_t index, std::int64_t stride);
// The least index whose offset needs more than 31 bits.
std::int64_t first_index_beyond_int32(std::int64_t stride);

// Slots dealt to the ranks of a context-parallel group, `interleave` at a time.
struct RankSlot {
  std::int64_t rank = 0, local = 0;
  bool operator==(const RankSlot&) const = default;
};
RankSlot rank_slot(std::int64_t slot, std::int64_t ranks, std::int64_t interleave = 1);

// Token pages that move to host memory and back as one: the pools of index_kpool neighbouring pages
// lie in the first of them. Page numbers of the sequence, ascending.
std::vector<std::int64_t> offload_group(std::int64_t token_page, std::int64_t index_kpool);

}  // namespace indexpool::serving
