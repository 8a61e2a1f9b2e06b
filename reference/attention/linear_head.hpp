// One head of linear attention: normalised operands, the state with a bound on its error, and what
// f32 does to both. Internal to the layer.
//
// How errors add up. For one value channel, s_t = A_t s_(t-1) + beta_t v_t k_t with
// A_t = (I - beta_t k_t k_t^T) diag(alpha_t). An implementation's state obeys the same recurrence
// with an extra local error d_t, made of the roundings of that step alone. As |k_t| <= 1 (eps > 0),
// 0 <= beta_t <= 1 and 0 < alpha_t <= 1, the 2-norm of A_t is at most a_t = max_c alpha_tc <= 1, so
//   |e_t| <= a_t |e_(t-1)| + |d_t|:
// errors are forgotten with the slowest channel, and never amplified.
#pragma once

#include <cmath>
#include <cstdint>

#include "indexpool/reference/attention/attention.hpp"
#include "indexpool/reference/linear.hpp"
#include "indexpool/reference/rounding.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {

template <class T>
struct LinearHead {
  Matrix<T> q, k;       // [T, K] normalised
  Matrix<T> v;          // [T, V]
  Matrix<T> log_decay;  // [T, K]
  Vector<T> beta;       // [T]
  T scale{};
  double norm_error = 0;  // relative, of every component of q and k as computed
  bool open = false;      // a sum of squares may leave the range of binary32
  Eigen::Index tokens() const { return q.rows(); }
};

// error[j]: bound on the 2-norm of column j of (an implementation's state - state).
template <class T>
struct LinearState {
  Matrix<T> state;  // [K, V]
  Vector<T> error;  // [V]
};

// (1 + a)(1 + b) - 1.
inline double compound(double a, double b) { return a + b + a * b; }

// x / sqrt(x . x + eps) of K channels: K + 1 roundings of the sum count half; square root and
// quotient, or a reciprocal root (rsqrt.approx: 1.515 ulp measured), and the product: 6 more; two
// for second-order terms and underflow.
inline double normalisation_error(Eigen::Index channels) {
  return gamma(0.5 * static_cast<double>(channels + 1) + 8);
}

// Roundings of T itself are those of binary32, 2^29 and more times smaller; so are those of the
// bound's own evaluation over up to 2^20 steps.
inline constexpr double own_share = 1 + 0x1p-8;

template <class T>
LinearHead<T> linear_head(const LinearAttentionInputs& inputs, std::int64_t head) {
  const auto rows = [&](const Tensor& tensor, bool normalise, bool& open) {
    const std::int64_t tokens = tensor.dim(0), heads = tensor.dim(1), width = tensor.dim(2);
    Matrix<T> result(tokens, width);
    for (std::int64_t t = 0; t < tokens; ++t) {
      T squares = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const T x = tensor.at((t * heads + head) * width + c);
        result(t, c) = x;
        squares += x * x;
      }
      if (!normalise) continue;
      using std::sqrt;
      open = open || may_overflow_f32(squares);
      result.row(t) /= sqrt(T(squares + T(inputs.eps)));
    }
    return result;
  };
  LinearHead<T> result;
  bool ignored = false;
  result.q = rows(inputs.queries, true, result.open);
  result.k = rows(inputs.keys, true, result.open);
  result.v = rows(inputs.values, false, ignored);
  result.log_decay = rows(inputs.log_decay, false, ignored);
  result.beta = Vector<T>(inputs.beta.dim(0));
  for (Eigen::Index t = 0; t < result.beta.size(); ++t)
    result.beta(t) = T(inputs.beta.at(t * inputs.beta.dim(1) + head));
  result.scale = T(inputs.scale);
  result.norm_error = normalisation_error(result.q.cols());
  return result;
}

template <class T>
LinearState<T> linear_state(const LinearAttentionInputs& inputs, std::int64_t head) {
  const std::int64_t keys = inputs.state.dim(1), values = inputs.state.dim(2);
  LinearState<T> result = {Matrix<T>(keys, values), Vector<T>::Zero(values)};
  for (std::int64_t i = 0; i < keys * values; ++i)
    result.state.data()[i] = T(inputs.state.at(head * keys * values + i));
  return result;
}

// A value and a bound on an implementation's error.
template <class T>
struct Within {
  T value{}, error{};
};

// Open where the error is unknown or f32 may overflow.
template <class T>
void store_within(Bounded& target, std::int64_t index, const Within<T>& x) {
  using std::abs;
  const auto i = static_cast<std::size_t>(index);
  target.value[i] = to_double(x.value);
  const T wide = x.error * own_share;
  if (!(abs(x.value) + wide < T(0x1p120))) {
    target.low[i] = -std::numeric_limits<double>::infinity();
    target.high[i] = std::numeric_limits<double>::infinity();
    return;
  }
  target.low[i] = double_below(T(x.value - wide));
  target.high[i] = double_above(T(x.value + wide));
}

template <class T>
void store_state(Bounded& target, std::int64_t head, const LinearState<T>& state) {
  const Eigen::Index values = state.state.cols();
  for (Eigen::Index c = 0; c < state.state.rows(); ++c) {
    for (Eigen::Index j = 0; j < values; ++j)
      store_within(target, (head * state.state.rows() + c) * values + j,
                   Within<T>{state.state(c, j), state.error(j)});
  }
}

}  // namespace indexpool::reference
