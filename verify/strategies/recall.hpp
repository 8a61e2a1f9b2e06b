// Selection from pools beside the unpooled oracle's, with one budget of tokens for all ratios.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/verify/strategies/settings.hpp"
#include "indexpool/verify/strategies/stream.hpp"

namespace indexpool::verify::strategies {

// sum_h head_weight_h relu(q_h . v), v [D].
double score_of(const Stream& stream, std::int64_t step, std::span<const double> vector);
// Of the first `tokens` tokens, the k that score highest one by one, ascending.
std::vector<std::int64_t> oracle_tokens(const Stream& stream, std::int64_t layer, std::int64_t step,
                                        std::int64_t tokens, std::int64_t k);
// By falling score, the lower index first among equals, as long as their tokens fit the budget; one
// that does not fit is passed over. Ascending indices.
std::vector<std::size_t> select_segments(std::span<const double> scores,
                                         std::span<const Segment> segments, std::int64_t budget);
// Share of `wanted` (ascending) in the selected segments or from `tail_first` on.
double share_kept(std::span<const std::int64_t> wanted, std::span<const Segment> selected,
                  std::int64_t tail_first);

}  // namespace indexpool::verify::strategies
