// Projections from hidden states: matrix products in f32, LayerNorm, roundings to storage.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/linear.hpp"
#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {
namespace {

template <class T>
struct Rows {
  Matrix<T> value, low, high;
};

// x W^T with any order of K additions in binary32: gamma_K |x| |W|^T around the exact product.
template <class T>
Rows<T> product(const Matrix<T>& x, const Matrix<T>& w) {
  const double terms = static_cast<double>(x.cols());
  Rows<T> result;
  result.value = x * w.transpose();
  const Matrix<T> error =
      (x.cwiseAbs() * w.cwiseAbs().transpose()) * T(gamma(terms) + terms * epsilon<T>());
  const T underflow = terms * f32_subnormal;
  result.low = (result.value - error).array() - underflow;
  result.high = (result.value + error).array() + underflow;
  return result;
}

template <class T>
Matrix<T> rounded(const Matrix<T>& x, const Format& format) {
  return x.unaryExpr([&](const T& v) { return round_to_format(v, format); });
}
template <class T>
Rows<T> rounded(const Rows<T>& x, const Format& format) {
  return {rounded(x.value, format), rounded(x.low, format), rounded(x.high, format)};
}

template <class T>
Matrix<T> matrix_of(const Tensor& tensor) {
  const Eigen::Index rows = tensor.shape().size() == 1 ? 1 : tensor.dim(0);
  Matrix<T> result(rows, tensor.size() / rows);
  for (std::int64_t i = 0; i < tensor.size(); ++i) result.data()[i] = T(tensor.at(i));
  return result;
}

// The real tokens of a padded [B, T, X] tensor.
template <class T>
Matrix<T> real_rows(const Tensor& padded, const std::vector<Sequence>& sequences) {
  std::int64_t count = 0;
  for (const auto& sequence : sequences) count += sequence.length;
  const std::int64_t width = padded.shape().back(), length = padded.dim(1);
  Matrix<T> result(count, width);
  Eigen::Index row = 0;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    for (std::int64_t i = 0; i < sequences[b].length; ++i, ++row) {
      const std::int64_t at =
          (static_cast<std::int64_t>(b) * length + sequences[b].first_key + i) * width;
      for (std::int64_t c = 0; c < width; ++c) result(row, c) = T(padded.at(at + c));
    }
  }
  return result;
}

// Mean and standard deviation of a row known to lie in [low, high], as binary32 statistics.
template <class T>
struct Statistics {
  T mean{};                       // of the centres
  T mean_error{};                 // of a computed mean: gamma_D mean|y| and half the mean width
  Enclosed<T> inverse_deviation;  // 1 / sqrt(variance + eps)
};

// Variance in binary32, by two passes or by updating formulas: relative error at most about
// D u kappa, kappa = sqrt(1 + mean^2 / variance) (Chan, Golub, LeVeque 1983, table 1); twice that
// and 8 roundings more cover second-order terms. An input off by p changes the deviation by at
// most |p|_2 / sqrt(D), as the norm of the centred vector is 1-Lipschitz.
template <class T>
Statistics<T> statistics(const Vector<T>& centre, const Vector<T>& half_width, double eps) {
  using std::sqrt;
  const double d = static_cast<double>(centre.size());
  Statistics<T> result;
  result.mean = centre.sum() / d;
  const Vector<T> centred = centre.array() - result.mean;
  const T variance = centred.squaredNorm() / d;
  const T deviation = sqrt(variance), shift = half_width.norm() / sqrt(T(d));
  result.mean_error =
      T(gamma(d + 1)) * (centre.cwiseAbs() + half_width).sum() / d + half_width.sum() / d;
  const T least = deviation > shift ? T(deviation - shift) : T(0), most = deviation + shift;
  // kappa * variance = sqrt(variance (variance + mean^2)): finite for constant rows.
  const auto spread = [&](const T& sd) {
    return T(gamma(2 * d + 8) * sqrt(T(sd * sd * (sd * sd + result.mean * result.mean))));
  };
  const T low = least * least - spread(most), high = most * most + spread(most);
  // Squared error of the computed mean enters every centred form.
  const T squared = result.mean_error * result.mean_error;
  const T smallest = (low > 0 ? low : T(0)) + eps, largest = high + squared + eps;
  // Sum with eps, square root and reciprocal (rsqrt.approx: 1.515 ulp measured): 6 u.
  const T slack = gamma(6) + 16 * epsilon<T>();
  result.inverse_deviation = {1 / sqrt(T(variance + eps)), (1 - slack) / sqrt(largest),
                              (1 + slack) / sqrt(smallest)};
  return result;
}

// (y - mean) / deviation * weight + bias; also as (y r - mean r) weight + bias.
template <class T>
Rows<T> layer_norm(const Rows<T>& input, const Matrix<T>& weight, const Matrix<T>& bias,
                   double eps) {
  using std::abs;
  Rows<T> result = input;
  for (Eigen::Index row = 0; row < input.value.rows(); ++row) {
    const Vector<T> centre = (input.low.row(row) + input.high.row(row)).transpose() / T(2);
    const Vector<T> half = (input.high.row(row) - input.low.row(row)).transpose() / T(2);
    const Vector<T> values = input.value.row(row).transpose();
    const auto own = statistics<T>(values, Vector<T>::Zero(values.size()), eps);
    const auto stats = statistics<T>(centre, half, eps);
    const T& most = stats.inverse_deviation.high;
    const T& least = stats.inverse_deviation.low;
    const T middle = (most + least) / 2, reach = (most - least) / 2;
    for (Eigen::Index c = 0; c < centre.size(); ++c) {
      const T& w = weight(0, c);
      const T offset = centre(c) - stats.mean;
      const T offset_error = half(c) + stats.mean_error;
      const T size = abs(centre(c)) + half(c) + abs(stats.mean) + stats.mean_error;
      const T normalised = offset * middle;
      const T error = offset_error * most + abs(offset) * reach + T(gamma(4)) * size * most;
      const T out = normalised * w + bias(0, c);
      const T out_error = (error * abs(w)) * T(1 + gamma(3)) +
                          T(gamma(3)) * (abs(normalised * w) + abs(bias(0, c))) +
                          epsilon<T>() * 64 * (abs(normalised * w) + abs(bias(0, c)));
      result.value(row, c) = (values(c) - own.mean) * own.inverse_deviation.value * w + bias(0, c);
      result.low(row, c) = out - out_error;
      result.high(row, c) = out + out_error;
    }
  }
  return result;
}

template <class T>
Bounded bounded(const Rows<T>& rows, Shape shape) {
  Bounded result(std::move(shape));
  for (std::size_t i = 0; i < result.value.size(); ++i) {
    result.value[i] = to_double(rows.value.data()[i]);
    result.low[i] = std::min(double_below(rows.low.data()[i]), result.value[i]);
    result.high[i] = std::max(double_above(rows.high.data()[i]), result.value[i]);
  }
  return result;
}

// transformers computes the head weights in the weight's dtype, then in binary32; the engines in
// binary32 throughout. Times H^-0.5 as a binary32 constant.
template <class T>
Rows<T> head_weights(const Matrix<T>& hidden, const Matrix<T>& weight, const NumericMode& mode,
                     std::int64_t heads) {
  using std::abs;
  using std::sqrt;
  auto rows = product(hidden, weight);
  if (mode.pool_rounding == PoolRounding::storage_products) {
    rows = rounded(rows, format_of(mode.storage));
  }
  const T scale = 1 / sqrt(T(static_cast<double>(heads)));
  const T slack = gamma(2) + 8 * epsilon<T>();
  const auto outward = [&](const T& x, int sign) { return T(scale * (x + sign * slack * abs(x))); };
  return {rounded(Matrix<T>(rows.value * scale), format_of(DType::f32)),
          rows.low.unaryExpr([&](const T& x) { return outward(x, -1); }),
          rows.high.unaryExpr([&](const T& x) { return outward(x, +1); })};
}

template <class T>
Projected project_in(const Case& test_case) {
  const auto& in = test_case.projections;
  const auto& inputs = test_case.inputs;
  const auto& config = inputs.config;
  const Format storage = format_of(inputs.mode.storage);
  const auto hidden = real_rows<T>(in.hidden_states, inputs.sequences);
  const auto residual = real_rows<T>(in.q_resid, inputs.sequences);
  const std::int64_t n = hidden.rows(), d = config.index_head_dim, h = config.index_n_heads;
  const auto keys = rounded(product(hidden, matrix_of<T>(in.wk)), storage);
  const auto normalised =
      layer_norm(keys, matrix_of<T>(in.k_norm_weight), matrix_of<T>(in.k_norm_bias), in.k_norm_eps);
  return {bounded(rounded(product(residual, matrix_of<T>(in.wq_b)), storage), {n, h, d}),
          bounded(rounded(normalised, storage), {n, d}),
          bounded(rounded(product(hidden, matrix_of<T>(in.gate_weight)), storage), {n, d}),
          bounded(head_weights(hidden, matrix_of<T>(in.weights_proj), inputs.mode, h), {n, h})};
}

}  // namespace

Projected project(const Case& test_case, Precision precision) {
  if (!test_case.projections.present()) {
    throw ConfigError(
        fmt::format("case '{}' has no hidden states: nothing to project", test_case.name));
  }
  return precision == Precision::binary64 ? project_in<double>(test_case)
                                          : project_in<Quad>(test_case);
}

}  // namespace indexpool::reference
