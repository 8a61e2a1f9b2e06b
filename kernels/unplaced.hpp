// Parts of a launch's arguments that lie nowhere: declared work needs their shapes only.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

PagedCache unplaced_cache(const Shape& shape, std::int64_t states_per_page);
// A ring for `drafts` speculative tokens, its blocks back to back.
TailRing unplaced_tail(const Shape& shape, std::int64_t drafts);
// Columns of a row of logits: whole 16-byte vectors.
constexpr std::int64_t whole_logits_stride(std::int64_t pools) { return (pools + 3) / 4 * 4; }

}  // namespace indexpool::kernels
