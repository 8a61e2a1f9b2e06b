// Faulty kernels: each does what a reported bug did. They run in the place of a real kernel on the
// executor's memory, so that their output meets the ordinary checks.
#pragma once

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::verify {

// Around the real kernels that write the cache.
enum class CacheFault {
  stash_follows_pool_slot,  // append keeps a token only where a pool closes
  stash_dropped,            // append keeps no token
  tail_stride_dense,        // seed_tail takes blocks for back to back
  plan_left_zero            // append finds slot 0 for every token
};
const kernels::Kernel& cache_stand_in(CacheFault fault);

// Plain loops in f32; right with `none`.
enum class LogitsFault {
  none,
  relu_missing,
  open_pool_visible,  // pools p <= position / index_kpool
  future_visible,     // every pool of the sequence
  batch_stride        // requests from 64 on find their row of the block table by the inner stride
};
const kernels::Kernel& logits_stand_in(LogitsFault fault);

// A sort of each row; right with `none`.
enum class TopkFault {
  none,
  short_rows_unfilled,  // entries without a pool are not written
  nan_first,            // NaN sorts above all, its bits become an index
  f16_keys,             // scores are compared in half precision
  candidates_lost,      // the last bin's candidates beyond the buffer's end are dropped
  ties_hashed,          // equal scores in an order of their own
  ties_by_arrival,      // equal scores as the lanes arrive
  cut_by_arrival,       // one pool too few: the last to arrive is missing
  last_chunk_only,      // pools of the last chunk of the prompt
  first_pools_always    // the path of short sequences: all tokens from the first on
};
inline constexpr std::int64_t stand_in_chunk_tokens = 32;  // of last_chunk_only
const kernels::Kernel& topk_stand_in(TopkFault fault);

}  // namespace indexpool::verify
