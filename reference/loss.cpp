#include "indexpool/reference/loss.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct RelativeErrors {
  double sum = 0, worst = 0;
  std::int64_t count = 0;

  void add(std::span<const double> answer, std::span<const double> truth) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      error += (answer[i] - truth[i]) * (answer[i] - truth[i]);
      size += truth[i] * truth[i];
    }
    if (size == 0) return;
    const double relative = std::sqrt(error / size);
    sum += relative;
    worst = std::max(worst, relative);
    ++count;
  }
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// Vectors after the round trip through codes and scale.
std::vector<double> dequantised(const Bounded& stored, const NumericMode& mode,
                                RelativeErrors& errors) {
  const auto dim = at(stored.shape.back());
  std::vector<double> result = stored.value;
  for (std::size_t first = 0; first < result.size(); first += dim) {
    const auto vector = std::span(stored.value).subspan(first, dim);
    const auto answer = quantise(vector, mode);
    for (std::size_t d = 0; d < dim; ++d) result[first + d] = answer.codes[d] * answer.scale;
    if (mode.quantised()) errors.add(std::span(result).subspan(first, dim), vector);
  }
  return result;
}

// Logits of one sequence's rows against keys that become visible `tokens_per_key` tokens apart.
Bounded sequence_logits(const IndexerInputs& inputs, const Sequence& sequence,
                        std::span<const double> queries, std::span<const double> keys,
                        std::int64_t tokens_per_key) {
  const auto& config = inputs.config;
  const auto heads = at(config.index_n_heads), dim = at(config.index_head_dim);
  const auto first = at(sequence.first_row), count = at(sequence.length);
  std::vector<double> head_weights;
  for (std::size_t i = first * heads; i < (first + count) * heads; ++i) {
    head_weights.push_back(inputs.head_weights.at(static_cast<std::int64_t>(i)));
  }
  std::vector<std::int64_t> visible;
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    visible.push_back(visible_pools(t, tokens_per_key));
  }
  LogitOperands operands;
  operands.heads = config.index_n_heads;
  operands.head_dim = config.index_head_dim;
  operands.queries = queries.subspan(first * heads * dim, count * heads * dim);
  operands.head_weights = head_weights;
  operands.logit_scale = inputs.logit_scale;
  operands.pools = keys;
  return logits(operands, visible, f32_any_order());
}

std::span<const double> row_of(const Bounded& bounds, std::int64_t row, std::int64_t visible) {
  return std::span(bounds.value).subspan(at(row * bounds.shape[1]), at(visible));
}

double sum_of(std::span<const double> scores, const std::vector<std::int64_t>& indices) {
  double sum = 0;
  for (const auto i : indices) sum += scores[at(i)];
  return sum;
}

struct Totals {
  double pools = 0, values = 0, tokens = 0;
  std::int64_t rows = 0;
};

struct SequenceLogits {
  Bounded faithful, exact, tokens;
};

void add_row(Totals& totals, const SequenceLogits& scores, std::int64_t row,
             const IndexerConfig& config) {
  const std::int64_t kpool = config.index_kpool, visible = visible_pools(row, kpool);
  const std::int64_t k = config.topk_pools();
  if (visible <= k) return;
  const auto exact_row = row_of(scores.exact, row, visible);
  const auto exact = select(exact_row, k);
  const auto faithful = select(row_of(scores.faithful, row, visible), k);
  const auto tokens = select(row_of(scores.tokens, row, row + 1), config.index_topk);
  std::int64_t same = 0, covered = 0;
  for (const auto pool : faithful) same += std::ranges::binary_search(exact, pool);
  for (const auto token : tokens) {
    const bool tail = config.index_kpool_always_select_tail && token >= visible * kpool;
    covered += tail || std::ranges::binary_search(exact, token / kpool);
  }
  const double best = sum_of(exact_row, exact);
  totals.pools += static_cast<double>(same) / static_cast<double>(k);
  totals.values += best > 0 ? sum_of(exact_row, faithful) / best : 1;
  totals.tokens += static_cast<double>(covered) / static_cast<double>(tokens.size());
  ++totals.rows;
}

}  // namespace

Loss measure_loss(const IndexerInputs& inputs) {
  const auto dim = at(inputs.config.index_head_dim);
  const auto pooled = pool(inputs);
  RelativeErrors pooling, quantiser;
  for (std::size_t i = 0; i < pooled.pooled.value.size(); i += dim) {
    pooling.add(std::span(pooled.pooled.value).subspan(i, dim),
                std::span(pooled.exact.value).subspan(i, dim));
  }
  const auto codes = dequantised(pooled.rotated, inputs.mode, quantiser);
  const auto query_codes = dequantised(rotate_queries(inputs), inputs.mode, quantiser);
  const auto queries = Bounded::exact(inputs.queries), keys = Bounded::exact(inputs.keys);
  Totals totals;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const auto& sequence = inputs.sequences[s];
    if (visible_pools(sequence.length - 1, inputs.config.index_kpool) <=
        inputs.config.topk_pools()) {
      continue;
    }
    const auto part = [&](const std::vector<double>& x, std::int64_t first, std::int64_t count) {
      return std::span(x).subspan(at(first) * dim, at(count) * dim);
    };
    const auto first = pooled.first_pool[s], count = pooled.first_pool[s + 1] - first;
    const std::int64_t kpool = inputs.config.index_kpool;
    const SequenceLogits scores{
        sequence_logits(inputs, sequence, query_codes, part(codes, first, count), kpool),
        sequence_logits(inputs, sequence, queries.value, part(pooled.exact.value, first, count),
                        kpool),
        sequence_logits(inputs, sequence, queries.value,
                        part(keys.value, sequence.first_row, sequence.length), 1)};
    for (std::int64_t t = 0; t < sequence.length; ++t) add_row(totals, scores, t, inputs.config);
  }
  Loss loss{pooling.mean(), pooling.worst, quantiser.mean(), quantiser.worst, 1, 1, 1, totals.rows};
  if (totals.rows == 0) return loss;
  const auto rows = static_cast<double>(totals.rows);
  loss.pool_recall = totals.pools / rows;
  loss.value_recall = totals.values / rows;
  loss.token_recall = totals.tokens / rows;
  return loss;
}

}  // namespace indexpool::reference
