// Arguments of the kernels, one struct per operation. Pointers are the target's global memory,
// 16-byte aligned. N rows (tokens of the batch, back to back), D = head_dim, H = heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "indexpool/kernels/attention_args.hpp"
#include "indexpool/kernels/backward_args.hpp"
#include "indexpool/kernels/policy_args.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/problem.hpp"

namespace indexpool::kernels {

// A paged cache with planar pages: [states_per_page x D codes][states_per_page x f32 scale], the
// scales absent when the cache is not quantised. Slot s lies in page s / states_per_page.
struct PagedCache {
  std::byte* pages = nullptr;
  std::int64_t page_stride = 0;  // bytes; at least the page's own bytes
  std::int32_t states_per_page = 64;
};

// The last tokens of each request, not yet pooled or still open to rejection:
// [block][half: 0 keys, 1 gate scores][ring][D] in the storage dtype. Position p is entry p % ring.
struct TailRing {
  std::byte* base = nullptr;
  std::int64_t block_stride = 0;  // bytes between blocks; may exceed 2 * ring * D elements
  std::int32_t ring = 4;
};

// One pool to close: its tokens are `carried` entries of the ring (positions first_position ...),
// then the rows that end at `last_row`.
struct alignas(16) PoolJob {
  std::int64_t slot;            // where it goes
  std::int64_t last_row;        // row of its last token
  std::int64_t first_position;  // position of its first token in the sequence
  std::int32_t tail_block;
  std::int32_t carried;  // 0 ... index_kpool - 1
};

// One row to keep in a ring.
struct alignas(16) TailJob {
  std::int64_t row;
  std::int32_t tail_block;
  std::int32_t ring_index;
};

// One request's new tokens in a decode step, in position order. slots[first_slot + i] is where the
// pool closed by token i goes (-1: token i closes none).
struct alignas(16) AppendJob {
  std::int64_t first_row;
  std::int64_t first_position;
  std::int64_t first_slot;
  std::int32_t tokens;
  std::int32_t tail_block;
};

// Sums of one pool for fault detection. The f32 pair is taken before rounding: sum_c y_c and sum_c
// (c + 1) / D * y_c. The exact pair, modulo 2^32, is over what is stored. Codes q_c in units of
// their smallest step and the bits b of their scale:
//   exact_sum = m(b) + sum_c q_c    exact_weighted_sum = sum_c h(c) q_c
//   h(8 l + i) = (2^4 m(i) + 2 i + 1) (2^12 m(l) + 2^4 l + 1),  i < 8, l < 256
// m is the finaliser of MurmurHash3 (A. Appleby), a bijection of 32-bit words with m(0) = 0. For
// head dim D the h(c) modulo 2 D are all its odd residues, so no two of them stand for one another;
// their high bits are no polynomial of c, so signs in a pattern (a rotated outlier's) do not
// cancel.
// Where nothing is quantised an element's bits are turned left by one, so that its sign counts 1
// and meets all bits of a weight. Of 16 bits that is q_c, and m(b) is absent; of 32 bits their
// halves u_c (low) and v_c (high) count apart:
//   exact_sum = sum_c (u_c + v_c)    exact_weighted_sum = sum_c h(c) (v_c + (2 D + 1) u_c)
struct alignas(16) PoolChecksum {
  float sum;
  float weighted_sum;
  std::uint32_t exact_sum;
  std::uint32_t exact_weighted_sum;
};

// A query row: its position in its sequence, the sequence's padding before the first token, and the
// row of the block table.
struct alignas(16) QueryRow {
  std::int64_t position;
  std::int64_t first_key;
  std::int64_t request;
  std::int64_t unused;
};

struct Shape {  // what selects a template instance
  IndexerConfig config;
  NumericMode mode;
};

struct PoolArgs {
  Shape shape;
  const void* keys = nullptr;         // [N, D] storage dtype
  const void* gate_scores = nullptr;  // [N, D] storage dtype
  const float* ape = nullptr;         // [index_kpool, D]
  const PoolJob* jobs = nullptr;
  std::int64_t job_count = 0;
  TailRing tail;  // read for carried tokens
  PagedCache cache;
  PoolChecksum* checksums = nullptr;  // [job_count]; null: not wanted
  // The same jobs on the host, for the declared traffic (scales of neighbouring slots share a
  // sector). Null: slots 0, 1, 2, ... are assumed.
  const PoolJob* host_jobs = nullptr;
};

// Runs after the pool kernel of the same chunk: a pool still needs what this overwrites.
struct SeedTailArgs {
  Shape shape;
  const void* keys = nullptr;
  const void* gate_scores = nullptr;
  const TailJob* jobs = nullptr;
  std::int64_t job_count = 0;
  TailRing tail;
};

struct AppendArgs {
  Shape shape;
  const void* keys = nullptr;
  const void* gate_scores = nullptr;
  const float* ape = nullptr;
  const AppendJob* jobs = nullptr;
  std::int64_t job_count = 0;
  const std::int64_t* slots = nullptr;  // by token of the step
  TailRing tail;
  PagedCache cache;
  PoolChecksum* checksums = nullptr;     // by token of the step; written where a pool closes
  std::int64_t pools_closed = 0;         // host-side count of slots >= 0, for the declared traffic
  std::int64_t tokens = 0;               // host-side sum of AppendJob::tokens
  const AppendJob* host_jobs = nullptr;  // the same on the host, for the declared traffic
  const std::int64_t* host_slots = nullptr;
};

// Rotates (Hadamard) and quantises queries, one scale per (row, head). Quantised modes only.
struct QuantizeQueryArgs {
  Shape shape;
  const void* queries = nullptr;  // [N, H, D] storage dtype
  std::int64_t rows = 0;          // N
  std::uint8_t* codes = nullptr;  // [N, H, D]
  float* scales = nullptr;        // [N, H]
};

// A tile of query rows of one request that share pool tiles.
struct alignas(16) QueryTile {
  std::int64_t first_row;
  std::int64_t pools;  // visible to its last row
  std::int32_t rows;
  std::int32_t request;
  std::int64_t unused;
};

// logits[row, p] = s_p * sum_h (head_weights * logit_scale * query_scale) * relu(q_h . k_p)
// for pools p < visible(row) = (position + 1) / index_kpool; columns beyond are not written.
struct LogitsArgs {
  Shape shape;
  const void* queries = nullptr;        // [N, H, D] codes (quantised) or storage dtype
  const float* query_scales = nullptr;  // [N, H]; null when not quantised
  const float* head_weights = nullptr;  // [N, H]
  float logit_scale = 1;
  const QueryRow* rows = nullptr;  // [N]
  const QueryTile* tiles = nullptr;
  std::int64_t row_count = 0, tile_count = 0;
  std::int64_t max_pools = 0;  // largest QueryTile::pools
  PagedCache cache;
  const std::int32_t* block_table = nullptr;  // [requests, block_table_width] page numbers
  std::int64_t block_table_width = 0;
  float* logits = nullptr;  // [N, logits_stride]
  std::int64_t logits_stride = 0;
  const QueryTile* host_tiles = nullptr;  // the same on the host, for the declared traffic
  const QueryRow* host_rows = nullptr;
};

// The index_topk / index_kpool visible pools with the largest logits; equal logits (+0 and -0 are
// equal): the lower pool; NaN never. Expanded to token positions, pools ascending, then -1; with a
// forced tail its tokens from column index_topk on, then -1.
struct TopkArgs {
  Shape shape;
  const float* logits = nullptr;  // [N, logits_stride]
  std::int64_t logits_stride = 0;
  const QueryRow* rows = nullptr;
  std::int64_t row_count = 0;
  std::int32_t* selection = nullptr;  // [N, selection_width]: first_key + position, -1 unused
  const QueryRow* host_rows = nullptr;
};

using OpArgs = std::variant<PoolArgs, SeedTailArgs, AppendArgs, QuantizeQueryArgs, LogitsArgs,
                            TopkArgs, PolicyArgs, AttentionArgs, BackwardArgs>;

}  // namespace indexpool::kernels
