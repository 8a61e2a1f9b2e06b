// What the operands of every layer are drawn with. Internal to verify/attention.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "indexpool/model/case_indexer.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/verify/fill.hpp"

namespace indexpool::verify::attention {

// Beside the streams of fill.hpp and of the published forms.
inline constexpr std::uint64_t a_log_stream = 300, dt_bias_stream = 301, beta_stream = 302,
                               state_stream = 303, selection_stream = 304, gate_stream = 305,
                               query_weight_stream = 306, key_weight_stream = 307,
                               mass_stream = 308, attended_stream = 309, token_stream = 310;

// The fill's keys, queries and gate scores, one row for each token and head ([T, H, D]), of one of
// several independent draws.
struct Drawn {
  Tensor keys, queries, gate_scores;
};
Drawn drawn(const Problem& problem, std::uint64_t draw);

std::int64_t all_tokens(const Problem& problem);

template <class Value>
Tensor filled(DType dtype, Shape shape, const Value& value) {
  Tensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value(i));
  return tensor;
}

}  // namespace indexpool::verify::attention
