// What an operation gave beside what it should have given, as numbers: for whoever wants to judge
// it by another rule than a verdict's.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/model/problem.hpp"

namespace indexpool::verify {

// Rows of `width` numbers. pool, append, quantize_query: head_dim dequantised elements beside the
// exact ones, and beside those that the reference's own quantiser would have stored. logits: 1; the
// visible ones beside the reference's. topk: selection_width tokens, -1 where a column holds none,
// beside the documented rule's.
struct Observation {
  Op op = Op::pool;
  std::int64_t width = 0;
  std::vector<double> found, expected;
  std::vector<double> stored;  // `expected` in the type of the output; equal to it for logits, topk
};

}  // namespace indexpool::verify
