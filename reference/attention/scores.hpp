// Softmax over scores that were themselves computed in binary32, and the sigmoid. Internal to the
// layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "indexpool/reference/attention/attention.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {

// A constant folded into the scores (log2 e, the scale, both) and its own rounding.
inline constexpr int folded_roundings = 5;

// Scores and bounds on how far an implementation's are off.
template <class T>
struct Scores {
  std::vector<T> score, error;
};

// exp(score - shift) with the error of the scores on top of the exponential's (softmax_pool.hpp):
// a shift common to all cancels, an error of one score does not.
template <class T>
SoftmaxTerms<T> attention_terms(const Scores<T>& scores) {
  const auto count = static_cast<std::int64_t>(scores.score.size());
  const auto calls = static_cast<int>(1 + (count + online_tile - 1) / online_tile);
  auto terms = softmax_terms<T>(scores.score, calls);
  terms.worst_relative = 0;
  for (std::size_t j = 0; j < scores.score.size(); ++j) {
    const T off = scores.error[j] * (1 + scores.error[j]);  // e^x - 1 <= x (1 + x) for x < 1
    T& relative = terms.relative[j];
    relative += off + off * relative;
    // Beyond this nothing is known of a weight that counts.
    if (!(scores.error[j] < T(0.5))) relative = 1;
    if (relative > terms.worst_relative) terms.worst_relative = relative;
  }
  return terms;
}

// Weighted mean of `values`; open where the weights are not known.
template <class T>
Enclosed<T> attended(const SoftmaxTerms<T>& terms, std::span<const double> values) {
  const double count = static_cast<double>(values.size());
  if (!(terms.worst_relative < T(0.5))) return open_around(weighted_mean(terms, values).mean);
  // Products and sums above, sums below, a rescaling of both per tile, the quotient.
  const double tiles = std::ceil(count / static_cast<double>(online_tile));
  return mean_in_f32(terms, values, count + (count - 1) + 2 * tiles + quotient_roundings);
}

// sigmoid(x) for an argument off by up to `error`, as 1 / (1 + exp(-x)) or exp(x) / (1 + exp(x)),
// whichever does not overflow: the error of the exponential counts with 1 - sigmoid(x) only.
template <class T>
Enclosed<T> sigmoid_in_f32(const T& x, const T& error) {
  using std::abs;
  using std::exp;
  const auto exact = [](const T& z) {
    return z >= 0 ? T(1 / (1 + exp(T(-z)))) : T(exp(z) / (1 + exp(z)));
  };
  const T reach = std::min(T(abs(x) + error), T(200));  // beyond, the exponential is 0 or infinite
  const T eta = u32 * (argument_roundings * reach + 2 * exp_ulps);
  const T low = exact(T(x - error)), high = exact(T(x + error));
  const T relative = (1 - low) * eta * (1 + eta) + gamma(1 + quotient_roundings + 1);
  const T flushed = low < T(4 * f32_smallest_normal) ? T(2 * f32_smallest_normal) : T(0);
  const T least = low * (1 - relative) - flushed, most = high * (1 + relative) + flushed;
  return {exact(x), least > 0 ? least : T(0), most < 1 ? most : T(1)};
}

}  // namespace indexpool::reference
