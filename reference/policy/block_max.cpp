// The largest score of each block of tokens.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"

namespace indexpool::reference {

Tensor block_max(const BlockMaxInputs& inputs) {
  const Tensor& scores = inputs.scores;
  if (scores.shape().size() != 2 || scores.dtype() != DType::f32) {
    throw ConfigError(fmt::format("scores: {} {}, expected f32 [rows, tokens]",
                                  info(scores.dtype()).name, to_string(scores.shape())));
  }
  if (inputs.block < 1) {
    throw ConfigError(fmt::format("block: {}, expected at least 1", inputs.block));
  }
  const std::int64_t rows = scores.dim(0), tokens = scores.dim(1);
  const std::int64_t blocks = tokens / inputs.block + (tokens % inputs.block != 0);
  Tensor result(DType::f32, {rows, blocks});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      double largest = -HUGE_VAL;
      const std::int64_t first = b * inputs.block, end = std::min(first + inputs.block, tokens);
      for (std::int64_t t = first; t < end; ++t) {
        const double score = scores.at(row * tokens + t);
        if (score > largest) largest = score;  // never true of NaN
      }
      result.set(row * blocks + b, largest);
    }
  }
  return result;
}

}  // namespace indexpool::reference
