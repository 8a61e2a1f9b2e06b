// Linear attention, token by token.
#include "indexpool/reference/attention/linear_head.hpp"

namespace indexpool::reference {
namespace {

// Of a step, common to all value channels.
template <class T>
struct StepErrors {
  T slowest{};  // max_c alpha_c
  T key_norm{}, query_norm{};
  double decay = 0;      // relative, of a decayed element: exp and the product
  double dot = 0;        // relative to sum |k||s|, of k . s from a decayed element's exact value on
  double update = 0;     // of a product k u
  double output = 0;     // relative to sum |q|(|s| + |k||u|)
  double underflow = 0;  // absolute, of a state's column
};

template <class T>
StepErrors<T> step_errors(const LinearHead<T>& head, Eigen::Index t) {
  using std::exp;
  const double keys = static_cast<double>(head.k.cols());
  const double steepest = to_double(T(-head.log_decay.row(t).minCoeff()));
  StepErrors<T> result;
  result.slowest = exp(T(head.log_decay.row(t).maxCoeff()));
  result.key_norm = head.k.row(t).norm();
  result.query_norm = head.q.row(t).norm();
  const double eta = u32 * (argument_roundings * steepest + 2 * exp_ulps);
  result.decay = compound(eta * (1 + eta), u32);
  const double operand = compound(head.norm_error, result.decay);
  result.dot = compound(operand, gamma(keys));
  result.update = compound(head.norm_error, gamma(2));
  result.output = compound(compound(head.norm_error, head.norm_error), gamma(keys + 4));
  result.underflow = (3 * keys + 8) * f32_subnormal;
  return result;
}

// One value channel through one step: its output.
template <class T>
Within<T> advance_column(const LinearHead<T>& head, Eigen::Index t, const Vector<T>& alpha,
                         const StepErrors<T>& errors, LinearState<T>& state, Eigen::Index column) {
  using std::abs;
  const auto k = head.k.row(t).transpose(), q = head.q.row(t).transpose();
  const T beta = head.beta(t);
  Vector<T> s = alpha.cwiseProduct(state.state.col(column));
  const T carried = errors.slowest * state.error(column);
  const T remembered = k.dot(s);
  const T magnitude = k.cwiseAbs().dot(s.cwiseAbs()) + errors.key_norm * carried + errors.underflow;
  const T residual = abs(T(head.v(t, column) - remembered)) + errors.key_norm * carried;
  const T update = beta * (head.v(t, column) - remembered);
  // Of the update as computed: its dot product, then a difference and a product.
  const T update_error =
      beta * (T(compound(errors.dot, gamma(2))) * magnitude + T(gamma(2)) * residual) +
      errors.underflow;
  const T update_magnitude = beta * residual + update_error;
  // Decay and final sum of an element; the product k u and the sum.
  const T local = T(compound(errors.decay, u32)) * (s.norm() + carried) +
                  errors.key_norm * (update_error + T(errors.update) * update_magnitude) +
                  errors.underflow;
  const T read = q.cwiseAbs().dot(s.cwiseAbs()) +
                 q.cwiseAbs().dot(k.cwiseAbs()) * update_magnitude + errors.query_norm * carried;
  s += k * update;
  state.state.col(column) = s;
  state.error(column) = carried + local;
  const T error = abs(head.scale) * (errors.query_norm * state.error(column) +
                                     T(errors.output) * (read + errors.query_norm * local)) +
                  errors.underflow;
  return {head.scale * q.dot(s), error};
}

template <class T>
LinearAttention recurrent(const LinearAttentionInputs& inputs) {
  const std::int64_t tokens = inputs.queries.dim(0), heads = inputs.queries.dim(1);
  const std::int64_t values = inputs.values.dim(2);
  LinearAttention result = {Bounded(inputs.values.shape()), Bounded(inputs.state.shape())};
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto head = linear_head<T>(inputs, h);
    auto state = linear_state<T>(inputs, h);
    if (head.open) state.error.setConstant(std::numeric_limits<T>::infinity());
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto errors = step_errors(head, t);
      const Vector<T> alpha = head.log_decay.row(t).transpose().unaryExpr([](const T& g) {
        using std::exp;
        return T(exp(g));
      });
      for (std::int64_t j = 0; j < values; ++j) {
        const auto output = advance_column(head, t, alpha, errors, state, j);
        store_within(result.outputs, (t * heads + h) * values + j, output);
      }
    }
    store_state(result.state, h, state);
  }
  return result;
}

}  // namespace

LinearAttention linear_attention(const LinearAttentionInputs& inputs, Precision precision) {
  validate(inputs);
  return precision == Precision::binary64 ? recurrent<double>(inputs) : recurrent<Quad>(inputs);
}

}  // namespace indexpool::reference
