// The forms, one definition each. Internal to the layer.
#pragma once

#include "indexpool/model/latency/kernel_form.hpp"

namespace indexpool {

extern const KernelForm stream_form, host_timed_form, tile_gemm_form, paged_logits_form,
    row_topk_form, decode_attention_form, prefill_attention_form, cached_read_form,
    pointer_chase_form;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of the entries that the rows of a sequence see: of the last row, and of the mean row.
struct EntryCounts {
  double most, least, rows;
};
EntryCounts entry_counts(const CacheShape& shape);

}  // namespace indexpool
