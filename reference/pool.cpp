// Softmax pooling of index_kpool consecutive tokens, per channel.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/rotate.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {
namespace {

// The tokens of one pool, one channel.
struct PoolChannel {
  std::vector<double> keys, gates, ape;
};

// Without any rounding: from the inputs as they are.
template <class T>
Enclosed<T> exact_mean(const PoolChannel& channel) {
  std::vector<T> scores(channel.keys.size());
  for (std::size_t j = 0; j < scores.size(); ++j)
    scores[j] = T(channel.gates[j]) + T(channel.ape[j]);
  const auto terms = softmax_terms<T>(scores, 1);
  const auto mean = weighted_mean(terms, channel.keys);
  const T error = own_error(mean, scores.size());
  return {mean.mean, mean.mean - error, mean.mean + error};
}

// The mode's own steps, before the rounding to mode.pooled.
template <class T>
Enclosed<T> faithful_mean(const PoolChannel& channel, const NumericMode& mode) {
  const std::size_t n = channel.keys.size();
  std::vector<T> scores(n);
  // Every mode adds gate score and position bias in binary32: one rounding, so one answer.
  for (std::size_t j = 0; j < n; ++j) {
    scores[j] = round_f32(T(T(channel.gates[j]) + T(channel.ape[j])));
  }
  if (std::ranges::all_of(scores,
                          [](const T& z) { return z == -std::numeric_limits<T>::infinity(); })) {
    throw ConfigError("every gate score of a pool is -inf: its weights are 0 / 0");
  }
  const double tokens = static_cast<double>(n);
  if (mode.pool_rounding == PoolRounding::f32_accumulate) {
    // n products and sums above, n - 1 sums below; a running maximum rescales both sums up to
    // n - 1 times.
    return mean_in_f32(softmax_terms<T>(scores, static_cast<int>(n)), channel.keys,
                       tokens + 3 * (tokens - 1) + quotient_roundings);
  }
  const auto terms = softmax_terms<T>(scores, 1);
  auto result = mean_of_rounded_products(terms, channel.keys, format_of(mode.storage));
  if (mode.storage == DType::f32) {
    // No rounding in between: the deviation form holds too (n - 1 sums, quotient, product, n - 1
    // sums). Both enclose, so their intersection does.
    const auto other = mean_in_f32(terms, channel.keys, 2 * (tokens - 1) + 1 + quotient_roundings);
    result.low = std::max(result.low, other.low);
    result.high = std::min(result.high, other.high);
  }
  return result;
}

template <class T>
void store(Bounded& target, std::int64_t index, const Enclosed<T>& x) {
  const auto i = static_cast<std::size_t>(index);
  target.value[i] = to_double(x.value);
  target.low[i] = std::min(double_below(x.low), target.value[i]);
  target.high[i] = std::max(double_above(x.high), target.value[i]);
}

PoolChannel gather(const IndexerInputs& inputs, std::int64_t first_row, std::int64_t channel) {
  const std::int64_t dim = inputs.config.index_head_dim;
  PoolChannel result;
  for (std::int64_t j = 0; j < inputs.config.index_kpool; ++j) {
    const std::int64_t at = (first_row + j) * dim + channel;
    result.keys.push_back(inputs.keys.at(at));
    result.gates.push_back(inputs.gate_scores.at(at));
    result.ape.push_back(inputs.ape.at(j * dim + channel));
  }
  return result;
}

// |sum_j p_j - 1| for weights stored as the mode stores them: n - 1 sums below, a quotient, and n -
// 1 sums by whoever adds them up; a running maximum rescales both sums up to n - 1 times.
double weight_sum_bound(const IndexerInputs& inputs) {
  const double tokens = static_cast<double>(inputs.config.index_kpool);
  if (inputs.mode.pool_rounding == PoolRounding::f32_accumulate) {
    return gamma(4 * (tokens - 1) + quotient_roundings);
  }
  const double f32 = gamma(2 * (tokens - 1) + quotient_roundings);
  const auto& storage = info(inputs.mode.storage);
  return f32 + storage.unit_roundoff * (1 + f32) + tokens * storage.smallest_subnormal;
}

template <class T>
void pool_row(const IndexerInputs& inputs, std::int64_t first_row, std::int64_t pool,
              Pooled& result) {
  const std::int64_t dim = inputs.config.index_head_dim;
  const Format pooled = format_of(inputs.mode.pooled);
  for (std::int64_t c = 0; c < dim; ++c) {
    const auto channel = gather(inputs, first_row, c);
    auto faithful = faithful_mean<T>(channel, inputs.mode);
    faithful.value = round_f32(faithful.value);
    store(result.exact, pool * dim + c, exact_mean<T>(channel));
    store(result.pooled, pool * dim + c, round_to_format(faithful, pooled));
  }
}

template <class T>
Pooled pool_in(const IndexerInputs& inputs) {
  const std::int64_t kpool = inputs.config.index_kpool;
  Pooled result;
  result.first_pool.push_back(0);
  for (const auto& sequence : inputs.sequences) {
    result.first_pool.push_back(result.first_pool.back() + sequence.length / kpool);
  }
  const std::int64_t pools = result.first_pool.back();
  const Shape shape{pools, inputs.config.index_head_dim};
  result.exact = result.pooled = Bounded(shape);
  result.pool_weight_sum = Bounded(Shape{pools});
  std::ranges::fill(result.pool_weight_sum.high, weight_sum_bound(inputs));
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const auto& sequence = inputs.sequences[s];
    for (std::int64_t p = 0; p < sequence.length / kpool; ++p) {
      pool_row<T>(inputs, sequence.first_row + p * kpool, result.first_pool[s] + p, result);
    }
  }
  result.rotated =
      inputs.mode.hadamard ? rotate<T>(result.pooled, inputs.mode.pooled) : result.pooled;
  return result;
}

// Infinite keys and NaN have no pooled key; a gate score of -inf is a weight of exactly 0, as long
// as the pool has another one.
void check_values(const IndexerInputs& inputs) {
  const auto refuse = [&](const char* name, std::int64_t flat, double found) {
    throw ConfigError(fmt::format("inputs.{}: {} in token row {}, channel {}; expected a number",
                                  name, found, flat / inputs.config.index_head_dim,
                                  flat % inputs.config.index_head_dim));
  };
  for (std::int64_t i = 0; i < inputs.keys.size(); ++i) {
    const double key = inputs.keys.at(i), gate = inputs.gate_scores.at(i);
    if (!std::isfinite(key)) refuse("keys", i, key);
    if (std::isnan(gate) || gate == HUGE_VAL) refuse("gate_scores", i, gate);
  }
  for (std::int64_t i = 0; i < inputs.ape.size(); ++i) {
    if (!std::isfinite(inputs.ape.at(i))) refuse("ape", i, inputs.ape.at(i));
  }
}

void check_shapes(const IndexerInputs& inputs) {
  const std::int64_t dim = inputs.config.index_head_dim;
  std::int64_t rows = 0;
  for (const auto& sequence : inputs.sequences) rows += sequence.length;
  const Shape expected{rows, dim}, bias{inputs.config.index_kpool, dim};
  const auto check = [](const char* name, const Tensor& tensor, const Shape& shape) {
    if (tensor.shape() == shape || (tensor.empty() && element_count(shape) == 0)) return;
    throw ConfigError(fmt::format("inputs.{}: shape {}, expected {} from the configuration", name,
                                  to_string(tensor.shape()), to_string(shape)));
  };
  check("keys", inputs.keys, expected);
  check("gate_scores", inputs.gate_scores, expected);
  check("ape", inputs.ape, bias);
}

}  // namespace

Pooled pool(const IndexerInputs& inputs, Precision precision) {
  check_shapes(inputs);
  check_values(inputs);
  return precision == Precision::binary64 ? pool_in<double>(inputs) : pool_in<Quad>(inputs);
}

}  // namespace indexpool::reference
