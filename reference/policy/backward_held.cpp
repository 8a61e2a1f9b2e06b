// From pooled vectors back to vectors and stored weights.
//
// With one weight per vector and s the weights' sum: a_i = dC . V_i, B = sum_j w_j a_j / s, and the
// weight's gradient is (a_i - B) / s = dC . (V_i - C) / s. Either way of writing it has terms of
// magnitude A_i + sum_j |w_j| A_j / |s|, A_i = sum_c |dC_c V_ic|, and both are divided by s, which
// itself is known to within its rounding.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/policy/functions.hpp"
#include "indexpool/reference/policy/norm_rope.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/policy/store.hpp"
#include "indexpool/reference/policy/terms.hpp"
#include "indexpool/reference/policy/weighted_sum.hpp"
#include "indexpool/reference/policy_backward.hpp"

namespace indexpool::reference {
namespace {

// The present vectors of a group, [n, D], their weights [n] or [n, D], and the pooled gradient.
template <class T>
struct BackwardGroup {
  std::vector<double> vectors, grad;
  std::vector<Ball<T>> weights;
  std::size_t count = 0, dim = 0;
};
template <class T>
struct Gradients {
  std::vector<Ball<T>> vectors, weights, norm;  // of the present vectors
};

// Divided by the weights' sum, which is a normal number.
template <class T>
class DividedBackward {
 public:
  DividedBackward(const BackwardGroup<T>& group, const Ball<T>& sum) : of_(group), sum_(sum) {
    using std::abs;
    least_ = abs(sum.value) - sum.error;
    apart_ = sum.error / least_;
    for (std::size_t i = 0; i < of_.count; ++i) {
      const auto exact = dot<T>(std::span(of_.grad), row(i));
      dots_.push_back(exact);
      const T size = abs(of_.weights[i].value);
      pooled_.value += of_.weights[i].value * exact.value / sum.value;
      pooled_.magnitude += size * exact.magnitude;
      weights_ += size;
    }
    for (const double g : of_.grad) grad_ += std::abs(g);
  }

  Ball<T> vector(std::size_t i, std::size_t c) const {
    using std::abs;
    const T g = of_.grad[c], w = of_.weights[i].value, value = g * w / sum_.value;
    const T largest = std::max({abs(T(g * w)), T(abs(w) / least_), T(abs(g) / least_)});
    if (may_overflow_f32(largest)) return open_ball(value);
    const T underflow = T(in_binary32.absolute(1)) * (1 / least_ + abs(g));
    if (value == 0) return {value, T(0)};
    return rounded(Ball<T>{value, abs(value) * apart_ + underflow}, in_binary32,
                   1 + quotient_roundings);
  }
  Ball<T> weight(std::size_t i) const {
    using std::abs;
    const double n = static_cast<double>(of_.dim + of_.count) + 2 * quotient_roundings + 4;
    const T value = (dots_[i].value - pooled_.value) / sum_.value;
    const T shared = pooled_.magnitude / least_, magnitude = dots_[i].magnitude + shared;
    const T largest = std::max(
        {pooled_.magnitude, magnitude, T(magnitude / least_), 1 / least_, T(weights_ / least_)});
    if (may_overflow_f32(largest)) return open_ball(value);
    const T underflow =
        T(in_binary32.absolute(n)) * (1 + weights_ + grad_) * (1 + 1 / least_) * (1 + 1 / least_);
    const T error =
        (T(in_binary32.relative(n)) * magnitude + shared * apart_ + own(2 * n, magnitude)) /
            least_ +
        abs(value) * apart_ + underflow;
    return rounded(Ball<T>{value, error}, in_binary32, quotient_roundings);
  }

 private:
  std::span<const double> row(std::size_t i) const {
    return std::span(of_.vectors).subspan(i * of_.dim, of_.dim);
  }

  const BackwardGroup<T>& of_;
  Ball<T> sum_;
  std::vector<Dot<T>> dots_;
  Dot<T> pooled_;                             // B, and sum_j |w_j| A_j
  T least_{}, apart_{}, weights_{}, grad_{};  // of |s|, relative; sums of |w| and |dC|
};

template <class T>
Gradients<T> all_open(const BackwardGroup<T>& group) {
  Gradients<T> result;
  result.vectors.assign(group.count * group.dim, open_ball(T(0)));
  result.weights.assign(group.weights.size(), open_ball(T(0)));
  result.norm.assign(group.dim, open_ball(T(0)));
  return result;
}

// One weight per vector.
template <class T>
Gradients<T> vector_backward(const BackwardGroup<T>& group, bool divide) {
  if (std::ranges::any_of(group.weights, [](const Ball<T>& w) { return w.open(); }))
    return all_open(group);
  Denominator<T> by;
  if (divide) by = denominator_of<T>(group.weights, in_binary32);
  if (by.open || by.fallback == 2) return all_open(group);
  Gradients<T> result;
  result.vectors.resize(group.count * group.dim);
  result.weights.resize(group.count);
  const bool mean = by.fallback == 1;
  const DividedBackward<T> divided(group, divide && !mean ? by.sum : Ball<T>{T(1), T(0)});
  const T n = static_cast<double>(group.count);
  for (std::size_t i = 0; i < group.count; ++i) {
    for (std::size_t c = 0; c < group.dim; ++c) {
      const Ball<T> g{T(group.grad[c]), T(0)};
      Ball<T>& to = result.vectors[i * group.dim + c];
      if (mean) {
        to = rounded(Ball<T>{g.value / n, T(0)}, in_binary32, 1 + quotient_roundings);
      } else {
        to = divide ? divided.vector(i, c) : times(g, group.weights[i], in_binary32);
      }
    }
    if (mean) continue;
    const auto row = std::span(group.vectors).subspan(i * group.dim, group.dim);
    result.weights[i] = divide ? divided.weight(i)
                               : dot_ball<T>(std::span<const double>(group.grad), row, in_binary32);
  }
  return result;
}

// Pairs of trailing channels, back by their angles.
template <class T>
void rotate_back(const NormRope& norm, std::int64_t g, std::vector<Ball<T>>& grad) {
  const std::size_t turned = grad.size() - static_cast<std::size_t>(norm.rope_dims);
  for (std::size_t c = turned; c < grad.size(); c += 2) {
    const std::int64_t at = g * norm.rope_dims + static_cast<std::int64_t>(c - turned);
    const T cosine = norm.rope.at(at), sine = norm.rope.at(at + 1);
    Terms<T> even, odd;
    even.add(grad[c], cosine), even.add(grad[c + 1], sine);
    odd.add(grad[c + 1], cosine), odd.add(grad[c], T(-sine));
    grad[c] = even.sum(in_binary32), grad[c + 1] = odd.sum(in_binary32);
  }
}

// csa: back through rotation and norm, y / r with r^2 = mean y^2 + eps; then dy = (n g - (y / r)
// mean(n g y / r)) / r.
template <class T>
std::vector<Ball<T>> through_norm(const BackwardGroup<T>& group, const NormRope& norm,
                                  std::int64_t g, std::vector<Ball<T>> grad,
                                  std::vector<Ball<T>>& to_norm) {
  const std::size_t dim = group.dim;
  rotate_back(norm, g, grad);
  std::vector<Ball<T>> y(dim), scaled(dim), unit(dim);
  for (std::size_t c = 0; c < dim; ++c) {
    Terms<T> sum;
    for (std::size_t i = 0; i < group.count; ++i)
      sum.add(group.weights[i * dim + c], T(group.vectors[i * dim + c]));
    y[c] = sum.sum(in_binary32);
  }
  const Ball<T> inverse = inverse_norm(y, static_cast<double>(norm.eps), in_binary32);
  Terms<T> along;
  to_norm.resize(dim);
  for (std::size_t c = 0; c < dim; ++c) {
    unit[c] = times(y[c], inverse, in_binary32);
    to_norm[c] = times(grad[c], unit[c], in_binary32);
    // The products in another order may be subnormal in between.
    to_norm[c] = rounded(to_norm[c], in_binary32, 1);
    to_norm[c].error += T(in_binary32.absolute(1)) * (inverse.magnitude() + grad[c].magnitude());
    const Ball<T> weight{T(norm.norm_weight.at(static_cast<std::int64_t>(c))), T(0)};
    scaled[c] = times(grad[c], weight, in_binary32);
    along.add(times(scaled[c], unit[c], in_binary32), T(1));
  }
  Ball<T> mean = along.sum(in_binary32, quotient_roundings);
  mean = {mean.value / static_cast<double>(dim), mean.error / static_cast<double>(dim)};
  mean = rounded(mean, in_binary32, 1);
  for (std::size_t c = 0; c < dim; ++c) {
    const Ball<T> share = times(unit[c], mean, in_binary32);
    Terms<T> apart;
    apart.add(scaled[c], T(1)), apart.add(share, T(-1));
    grad[c] = times(apart.sum(in_binary32, 3), inverse, in_binary32);
  }
  return grad;
}

// A weight for each channel.
template <class T>
Gradients<T> channel_backward(const BackwardGroup<T>& group, const NormRope& norm, std::int64_t g) {
  Gradients<T> result;
  std::vector<Ball<T>> grad(group.dim);
  for (std::size_t c = 0; c < group.dim; ++c) grad[c] = {T(group.grad[c]), T(0)};
  if (!norm.norm_weight.empty()) grad = through_norm(group, norm, g, std::move(grad), result.norm);
  result.vectors.resize(group.count * group.dim);
  result.weights.resize(group.count * group.dim);
  for (std::size_t i = 0; i < group.count; ++i) {
    for (std::size_t c = 0; c < group.dim; ++c) {
      const std::size_t k = i * group.dim + c;
      result.vectors[k] = times(grad[c], group.weights[k], in_binary32);
      result.weights[k] = times(grad[c], Ball<T>{T(group.vectors[k]), T(0)}, in_binary32);
    }
  }
  return result;
}

template <class T>
BackwardGroup<T> group_of(const PoolingInputs& in, std::span<const float> stored,
                          std::span<const float> grad_pooled, std::int64_t g) {
  BackwardGroup<T> group;
  group.count = static_cast<std::size_t>(present(in, g));
  group.dim = static_cast<std::size_t>(in.head_dim);
  group.vectors = gather(in, in.vectors, g);
  const auto of_group = grad_pooled.subspan(static_cast<std::size_t>(g) * group.dim, group.dim);
  group.grad.assign(of_group.begin(), of_group.end());
  const VectorGroup& record = in.groups[static_cast<std::size_t>(g)];
  const std::int64_t set = in.per_channel() ? g : record.weight_set;
  const std::int64_t width = in.per_channel() ? in.head_dim : 1;
  const std::int64_t first = (set * in.index_kpool + record.absent) * width;
  const std::size_t used = group.count * static_cast<std::size_t>(width);
  for (const float w : stored.subspan(static_cast<std::size_t>(first), used))
    group.weights.push_back(stored_ball<T>(w));
  return group;
}

template <class T>
HeldGradients held_in(const PoolingInputs& in, std::span<const float> stored,
                      std::span<const float> grad_pooled) {
  const std::int64_t groups = in.group_count(), m = in.index_kpool, dim = in.head_dim;
  const bool divide = find_policy(in.policy).normalisation == Normalisation::division;
  HeldGradients result;
  result.vectors = Bounded(Shape{groups, m, dim});
  result.pool_weights = Bounded(in.per_channel() ? Shape{groups, m, dim} : Shape{groups, m});
  if (!in.norm_rope.norm_weight.empty()) result.norm_weight = Bounded(Shape{groups, dim});
  for (std::int64_t g = 0; g < groups; ++g) {
    const BackwardGroup<T> group = group_of<T>(in, stored, grad_pooled, g);
    const Gradients<T> found = in.per_channel() ? channel_backward(group, in.norm_rope, g)
                                                : vector_backward(group, divide);
    // Present vectors are the last of a group.
    const auto put = [&](const std::vector<Ball<T>>& from, std::int64_t end, Bounded& to) {
      const auto first = static_cast<std::size_t>(end) - from.size();
      for (std::size_t k = 0; k < from.size(); ++k) store(to, first + k, from[k]);
    };
    put(found.vectors, (g + 1) * m * dim, result.vectors);
    put(found.weights, (g + 1) * m * (in.per_channel() ? dim : 1), result.pool_weights);
    if (!in.norm_rope.norm_weight.empty()) put(found.norm, (g + 1) * dim, result.norm_weight);
  }
  return result;
}

}  // namespace

HeldGradients held_gradients(const PoolingInputs& inputs, std::span<const float> stored_weights,
                             std::span<const float> grad_pooled, Precision precision) {
  check_operands(inputs);
  check_size("stored pool weights", stored_weights.size(),
             element_count(pool_weight_shape(inputs)));
  check_size("gradients of pooled vectors", grad_pooled.size(),
             inputs.group_count() * inputs.head_dim);
  const auto bad = std::ranges::find_if(grad_pooled, [](float x) { return !std::isfinite(x); });
  if (bad != grad_pooled.end())
    throw ConfigError(fmt::format("gradient {} of the pooled vectors is {}; expected a number",
                                  bad - grad_pooled.begin(), *bad));
  return precision == Precision::binary64 ? held_in<double>(inputs, stored_weights, grad_pooled)
                                          : held_in<Quad>(inputs, stored_weights, grad_pooled);
}

}  // namespace indexpool::reference
