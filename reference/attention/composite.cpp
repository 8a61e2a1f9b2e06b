// Attention over composite vectors with decompression projections, causal, end to end from the
// stored composites.
#include "indexpool/reference/attention/scores.hpp"
#include "indexpool/reference/linear.hpp"

namespace indexpool::reference {
namespace {

template <class T>
Matrix<T> head_rows(const Tensor& tensor, std::int64_t head) {  // [T, H, d] -> [T, d]
  const std::int64_t tokens = tensor.dim(0), heads = tensor.dim(1), dim = tensor.dim(2);
  Matrix<T> result(tokens, dim);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t c = 0; c < dim; ++c)
      result(t, c) = T(tensor.at((t * heads + head) * dim + c));
  }
  return result;
}
template <class T>
Matrix<T> head_matrix(const Tensor& tensor, std::int64_t head) {  // [H, d, d] -> [d, d]
  const std::int64_t dim = tensor.dim(1);
  Matrix<T> result(dim, dim);
  for (std::int64_t i = 0; i < dim * dim; ++i)
    result.data()[i] = T(tensor.at(head * dim * dim + i));
  return result;
}

// W C_t of all tokens, and how far it may be off with sums in any order.
template <class T>
struct Decompressed {
  Matrix<T> value, error;  // [T, d]

  Decompressed(const Matrix<T>& composites, const Matrix<T>& weight)
      : value(composites * weight.transpose()) {
    const double dim = static_cast<double>(weight.cols());
    const Matrix<T> magnitude = composites.cwiseAbs() * weight.cwiseAbs().transpose();
    error = (magnitude * T(gamma(dim) * own_margin)).array() + T(dim * f32_subnormal);
    for (Eigen::Index i = 0; i < error.size(); ++i) {
      if (may_overflow_f32(T(magnitude.data()[i])))
        error.data()[i] = std::numeric_limits<T>::infinity();
    }
  }
  static constexpr double own_margin = 1 + 0x1p-20;
};

// Scores of token t with tokens 0 to t.
template <class T>
Scores<T> causal_scores(const Decompressed<T>& q, const Decompressed<T>& k, Eigen::Index t) {
  using std::sqrt;
  const double dim = static_cast<double>(q.value.cols());
  const T scale = 1 / sqrt(T(dim));
  const T roundings = gamma(dim + folded_roundings) * Decompressed<T>::own_margin;
  const Vector<T> query = q.value.row(t).transpose(), off = q.error.row(t).transpose();
  const Vector<T> most = query.cwiseAbs() + off;
  Scores<T> result;
  for (Eigen::Index s = 0; s <= t; ++s) {
    const Vector<T> key = k.value.row(s).transpose(), key_off = k.error.row(s).transpose();
    const T magnitude = most.dot(key.cwiseAbs() + key_off);
    const T operands = off.dot(key.cwiseAbs() + key_off) + query.cwiseAbs().dot(key_off);
    result.score.push_back(scale * query.dot(key));
    result.error.push_back(scale * (operands + roundings * magnitude) + T(dim * f32_subnormal));
    if (may_overflow_f32(magnitude)) result.error.back() = std::numeric_limits<T>::infinity();
  }
  return result;
}

template <class T>
Bounded composite(const CompositeAttentionInputs& in) {
  const std::int64_t tokens = in.composites.dim(0), heads = in.composites.dim(1);
  const std::int64_t dim = in.composites.dim(2);
  Bounded result(in.composites.shape());
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto composites = head_rows<T>(in.composites, h);
    const Decompressed<T> q(composites, head_matrix<T>(in.query_weight, h));
    const Decompressed<T> k(composites, head_matrix<T>(in.key_weight, h));
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto terms = attention_terms(causal_scores(q, k, t));
      for (std::int64_t c = 0; c < dim; ++c) {
        std::vector<double> values;
        for (std::int64_t s = 0; s <= t; ++s)
          values.push_back(in.values.at((s * heads + h) * dim + c));
        const auto x = attended(terms, values);
        const auto i = static_cast<std::size_t>((t * heads + h) * dim + c);
        result.value[i] = to_double(x.value);
        result.low[i] = std::min(double_below(x.low), result.value[i]);
        result.high[i] = std::max(double_above(x.high), result.value[i]);
      }
    }
  }
  return result;
}

}  // namespace

Bounded composite_attention(const CompositeAttentionInputs& inputs, Precision precision) {
  validate(inputs);
  return precision == Precision::binary64 ? composite<double>(inputs) : composite<Quad>(inputs);
}

}  // namespace indexpool::reference
