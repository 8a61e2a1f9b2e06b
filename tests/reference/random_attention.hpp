// Random operands of the softmax attentions, and binary32 implementations of them with faults.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "indexpool/model/attention.hpp"
#include "indexpool/reference/bounded.hpp"

namespace indexpool::reference {

inline void fill_with(Tensor& tensor, double scale, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, scale * normal(random));
}

struct SparseDraw {
  std::int64_t rows = 3, heads = 2, key_heads = 1, tokens = 50, dim = 16, values = 8, width = 20;
  double query_scale = 1;
  DType storage = DType::bf16;
  std::uint64_t seed = 1;
};
inline SparseAttentionInputs random_sparse(const SparseDraw& draw) {
  std::mt19937_64 random(draw.seed);
  SparseAttentionInputs in;
  in.queries = Tensor(draw.storage, {draw.rows, draw.heads, draw.dim});
  in.keys = Tensor(draw.storage, {draw.tokens, draw.key_heads, draw.dim});
  in.values = Tensor(draw.storage, {draw.tokens, draw.key_heads, draw.values});
  in.selection = Tensor(DType::i32, {draw.rows, draw.width});
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(draw.dim)));
  fill_with(in.queries, draw.query_scale, random);
  fill_with(in.keys, 1, random);
  fill_with(in.values, 1, random);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(draw.tokens));
  std::iota(tokens.begin(), tokens.end(), 0);
  auto selection = in.selection.as<std::int32_t>();
  for (std::int64_t n = 0; n < draw.rows; ++n) {
    std::shuffle(tokens.begin(), tokens.end(), random);
    // The first row selects as many as fit, the second nothing, others some; unused among them.
    const std::int64_t used = n == 0   ? std::min(draw.width, draw.tokens)
                              : n == 1 ? 0
                                       : std::min<std::int64_t>(draw.width / 2, draw.tokens);
    for (std::int64_t w = 0; w < draw.width; ++w)
      selection[static_cast<std::size_t>(n * draw.width + w)] =
          w < used ? tokens[static_cast<std::size_t>(w)] : -1;
    std::shuffle(selection.begin() + n * draw.width, selection.begin() + (n + 1) * draw.width,
                 random);
  }
  return in;
}

enum class SoftmaxFault {
  none,
  no_scale,
  unused_is_token_0,
  last_dropped,
  no_maximum,   // exp without the shift
  future_token  // composite: token t sees token t + 1
};

// Softmax and weighted mean of `count` scores, in two passes or online by tiles of 32.
inline std::vector<float> f32_attend(const std::vector<float>& scores,
                                     const std::vector<std::vector<float>>& values, bool online,
                                     bool shift = true) {
  const std::size_t channels = values.front().size();
  std::vector<float> sum(channels);
  float denominator = 0,
        largest = online ? -HUGE_VALF : *std::max_element(scores.begin(), scores.end());
  if (!shift) largest = 0;
  const std::size_t tile = online ? 32 : scores.size();
  for (std::size_t first = 0; first < scores.size(); first += tile) {
    const std::size_t end = std::min(first + tile, scores.size());
    if (online) {
      const float before = largest;
      for (std::size_t j = first; j < end; ++j) largest = std::max(largest, scores[j]);
      const float rescale = std::exp(before - largest);
      denominator *= rescale;
      for (float& x : sum) x *= rescale;
    }
    for (std::size_t j = first; j < end; ++j) {
      const float weight = std::exp(scores[j] - largest);
      denominator += weight;
      for (std::size_t c = 0; c < channels; ++c) sum[c] += weight * values[j][c];
    }
  }
  for (float& x : sum) x /= denominator;
  return sum;
}

inline std::vector<float> f32_row(const Tensor& tensor, std::int64_t row, std::int64_t width) {
  std::vector<float> result;
  for (std::int64_t c = 0; c < width; ++c)
    result.push_back(static_cast<float>(tensor.at(row * width + c)));
  return result;
}
inline float f32_dot(const std::vector<float>& x, const std::vector<float>& y) {
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

inline std::vector<float> f32_sparse(const SparseAttentionInputs& in, bool online,
                                     SoftmaxFault fault = SoftmaxFault::none) {
  const auto selection = in.selection.as<std::int32_t>();
  const std::int64_t heads = in.queries.dim(1), dim = in.queries.dim(2),
                     width = in.selection.dim(1);
  const std::int64_t key_heads = in.keys.dim(1), channels = in.values.dim(2);
  std::vector<float> outputs;
  for (std::int64_t row = 0; row < in.queries.dim(0) * heads; ++row) {
    const std::int64_t n = row / heads, key_head = row % heads * key_heads / heads;
    const auto query = f32_row(in.queries, row, dim);
    std::vector<float> scores;
    std::vector<std::vector<float>> values;
    for (std::int64_t w = 0; w < width; ++w) {
      std::int64_t token = selection[static_cast<std::size_t>(n * width + w)];
      if (token < 0 && fault != SoftmaxFault::unused_is_token_0) continue;
      token = std::max<std::int64_t>(token, 0);
      const float dot = f32_dot(query, f32_row(in.keys, token * key_heads + key_head, dim));
      scores.push_back(fault == SoftmaxFault::no_scale ? dot : dot * in.scale);
      values.push_back(f32_row(in.values, token * key_heads + key_head, channels));
    }
    if (fault == SoftmaxFault::last_dropped && scores.size() > 1)
      scores.pop_back(), values.pop_back();
    auto result = std::vector<float>(static_cast<std::size_t>(channels));
    if (!scores.empty())
      result = f32_attend(scores, values, online, fault != SoftmaxFault::no_maximum);
    outputs.insert(outputs.end(), result.begin(), result.end());
  }
  return outputs;
}

// Largest |answer - value| / bound; above 1: outside. NaN is outside.
inline double worst_of(const Bounded& expected, const std::vector<float>& answer) {
  double result = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (is_open(expected.low[i], expected.high[i])) continue;
    const double off = answer[i] - expected.value[i];
    if (off == 0) continue;
    const double room =
        off > 0 ? expected.high[i] - expected.value[i] : expected.value[i] - expected.low[i];
    const double share = std::isnan(off) ? HUGE_VAL : std::abs(off) / room;
    result = std::max(result, share);
  }
  return result;
}

}  // namespace indexpool::reference
