// Attention over selected tokens.
#include "indexpool/reference/attention/scores.hpp"

namespace indexpool::reference {
namespace {

std::vector<std::int64_t> selected_tokens(const Tensor& selection, std::int64_t row) {
  const auto all = selection.as<std::int32_t>();
  const std::int64_t width = selection.dim(1);
  std::vector<std::int64_t> tokens;
  for (std::int64_t w = 0; w < width; ++w) {
    const std::int32_t token = all[static_cast<std::size_t>(row * width + w)];
    if (token >= 0) tokens.push_back(token);
  }
  return tokens;
}

// scale q . k of the selected tokens; `query` is a row of [N H, D].
template <class T>
Scores<T> scores_of(const SparseAttentionInputs& in, std::int64_t query, std::int64_t key_head,
                    const std::vector<std::int64_t>& tokens) {
  const std::int64_t dim = in.queries.dim(2), key_heads = in.keys.dim(1);
  const double roundings = gamma(static_cast<double>(dim + folded_roundings));
  const T scale = std::abs(in.scale);
  Scores<T> result;
  for (const std::int64_t token : tokens) {
    T sum = 0, magnitude = 0;
    for (std::int64_t c = 0; c < dim; ++c) {
      const T product = T(in.queries.at(query * dim + c)) *
                        T(in.keys.at((token * key_heads + key_head) * dim + c));
      using std::abs;
      sum += product;
      magnitude += abs(product);
    }
    const T underflow = static_cast<double>(dim) * f32_subnormal * (1 + scale);
    result.score.push_back(T(in.scale) * sum);
    result.error.push_back(may_overflow_f32(magnitude)
                               ? T(std::numeric_limits<T>::infinity())
                               : T(scale * magnitude * T(roundings * (1 + 0x1p-20)) + underflow));
  }
  return result;
}

void store(Bounded& target, std::size_t i, double value, double low, double high) {
  target.value[i] = value;
  target.low[i] = std::min(low, value);
  target.high[i] = std::max(high, value);
}

template <class T>
Bounded sparse(const SparseAttentionInputs& in) {
  const std::int64_t rows = in.queries.dim(0), heads = in.queries.dim(1);
  const std::int64_t key_heads = in.keys.dim(1), channels = in.values.dim(2);
  Bounded result({rows, heads, channels});
  for (std::int64_t n = 0; n < rows; ++n) {
    const auto tokens = selected_tokens(in.selection, n);
    if (tokens.empty()) continue;  // zeros
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t key_head = h * key_heads / heads;
      const auto terms = attention_terms(scores_of<T>(in, n * heads + h, key_head, tokens));
      for (std::int64_t c = 0; c < channels; ++c) {
        std::vector<double> values;
        values.reserve(tokens.size());
        for (const std::int64_t token : tokens)
          values.push_back(in.values.at((token * key_heads + key_head) * channels + c));
        const auto x = attended(terms, values);
        store(result, static_cast<std::size_t>((n * heads + h) * channels + c), to_double(x.value),
              double_below(x.low), double_above(x.high));
      }
    }
  }
  return result;
}

}  // namespace

Bounded sparse_attention(const SparseAttentionInputs& inputs, Precision precision) {
  validate(inputs);
  return precision == Precision::binary64 ? sparse<double>(inputs) : sparse<Quad>(inputs);
}

}  // namespace indexpool::reference
