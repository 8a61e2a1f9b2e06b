// Launches of a form's pooling that lie nowhere: declared work needs their shapes only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::kernels {

// Consecutive groups without absent vectors. `tokens` and `hidden` are those of a gate's hidden
// states.
struct PolicyShape {
  std::string_view policy;
  NumericMode mode;
  std::int64_t groups = 0, index_kpool = 4, head_dim = 128, heads = 1, tokens = 0, hidden = 0;
};
// In order; none for given weights, and for block_max, which has none.
std::vector<OpArgs> unplaced_weights(const PolicyShape& shape);
WeightedPoolArgs unplaced_pool(const PolicyShape& shape);

}  // namespace indexpool::kernels
