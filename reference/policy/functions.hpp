// What pool weights are made of: exponential, sigmoid, logarithm, dot product, cosine, softmax,
// with the errors of binary32 implementations. Internal to the layer.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "indexpool/reference/policy/ball.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {

// logf of CUDA and of libm: 1 ulp. log2f (0.919 ulp, measured on an H200) times ln 2: two roundings
// more. An ulp is at most 2 u.
inline constexpr double log_ulps = 2.1;
// dot / (sqrt(qq) sqrt(vv)), dot / sqrt(qq vv), or dot times the reciprocals: two square roots to 1
// ulp (sqrt.approx) and a quotient, or two reciprocal roots to 1.515 ulp (measured) and two
// products.
inline constexpr int cosine_roundings = 10;

// An exponential below this argument is 0 in binary32, and its relative error of no interest.
inline constexpr double least_exponent = -200;
// Below twice the smallest normal number a result may be flushed to zero, slightly wrong or not.
inline constexpr double flushed_below = 2 * f32_smallest_normal;

// e^eta - 1 for an exponential of x whose argument saw n roundings.
template <class T>
T exponential_error(const T& x, double n, Arithmetic arithmetic, double calls = 1) {
  using std::abs;
  if (x < T(least_exponent)) return 0;
  const double ulps = arithmetic.rounds ? calls * 2 * exp_ulps * u32 : 0;
  const T eta = (T(arithmetic.relative(n)) + own(4, T(1))) * abs(x) + ulps + own(4, T(1));
  return eta * (1 + eta);
}

// exp(x), x <= 0, whose argument saw n roundings.
template <class T>
Ball<T> exponential(const T& x, double n, Arithmetic arithmetic) {
  using std::exp;
  const T value = exp(x);
  T error = value * exponential_error(x, n, arithmetic);
  if (arithmetic.rounds && value < T(flushed_below)) error += flushed_below;
  return {value, error};
}

// 1 / (1 + exp(-x)) or exp(x) / (1 + exp(x)): either way an error of the exponential counts with
// 1 - sigmoid(x) only.
template <class T>
Ball<T> sigmoid(const Ball<T>& x, Arithmetic arithmetic) {
  using std::exp;
  const auto exact = [](const T& z) { return T(1 / (1 + exp(T(-z)))); };
  if (x.open()) return open_ball(T(0.5));
  const T value = exact(x.value), low = exact(x.low()), high = exact(x.high());
  const T reach = std::min(x.magnitude(), T(-least_exponent));
  const T relative = (1 - low) * exponential_error(reach, argument_roundings, arithmetic) +
                     arithmetic.relative(1 + quotient_roundings) + own(8, T(1));
  T error = std::max(T(value - low), T(high - value)) + high * relative;
  if (arithmetic.rounds && low < T(flushed_below)) error += flushed_below;
  return {value, error};
}

// log(top / bottom), both at least 1 and after up to two roundings, as a logarithm of the quotient
// or a difference of logarithms.
template <class T>
Ball<T> log_ratio(double top, double bottom, Arithmetic arithmetic) {
  using std::log;
  const T above = log(T(top)), below = log(T(bottom));
  const double ulps = arithmetic.rounds ? 2 * log_ulps * u32 : 0;
  const T error = T(ulps) * (above + below) + arithmetic.relative(quotient_roundings + 5);
  return rounded(Ball<T>{above - below, error}, arithmetic, 1, T(above + below));
}

// sum x y and sum |x y|.
template <class T>
struct Dot {
  T value{}, magnitude{};
};
template <class T>
Dot<T> dot(std::span<const double> x, std::span<const double> y) {
  using std::abs;
  Dot<T> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T product = T(x[i]) * T(y[i]);
    result.value += product;
    result.magnitude += abs(product);
  }
  return result;
}
// In binary32, in any order.
template <class T>
Ball<T> dot_ball(std::span<const double> x, std::span<const double> y, Arithmetic arithmetic) {
  const auto exact = dot<T>(x, y);
  return rounded(Ball<T>{exact.value, T(0)}, arithmetic, static_cast<double>(x.size()),
                 exact.magnitude);
}

// Of vectors whose squares are known; 0 for a zero vector. Open where a square or the product of
// both may leave the range of normal numbers: implementations then differ by what they multiply
// first.
template <class T>
Ball<T> cosine(const Ball<T>& dot, const Ball<T>& square, const Ball<T>& other,
               Arithmetic arithmetic) {
  using std::abs;
  using std::sqrt;
  if (square.value == 0 || other.value == 0) return {};
  const T value = dot.value / sqrt(T(square.value * other.value));
  if (dot.open() || square.open() || other.open()) return open_ball(value);
  const T least = square.low() * other.low(), most = square.high() * other.high();
  if (arithmetic.rounds) {
    const T smallest = std::min({square.low(), other.low(), least});
    const T largest = std::max({square.high(), other.high(), most});
    if (!(smallest >= T(flushed_below)) || may_overflow_f32(largest)) return open_ball(value);
  }
  // |dot| <= |q| |V|, so the deviation of the norms counts relative to the cosine.
  const T shrunk = sqrt(T(square.value * other.value / least)) - 1;
  const T grown = 1 - sqrt(T(square.value * other.value / most));
  const T error = dot.error / sqrt(least) + abs(value) * std::max(shrunk, grown);
  return rounded(Ball<T>{value, error}, arithmetic, cosine_roundings);
}

// p_i = exp(z_i) / sum_k exp(z_k), z known to within `score_error`, -inf allowed for all but one.
// Numerators by one exponential; the sum also by a running maximum, which multiplies up to n. Then
//   p~_i / p_i - 1 = sum_k p_k (omega_i - omega'_k) / (1 + sum_k p_k omega'_k).
template <class T>
void softmax(std::span<const T> scores, const T& score_error, Arithmetic arithmetic,
             std::span<Ball<T>> result) {
  using std::exp;
  const double n = static_cast<double>(scores.size());
  const T largest = *std::ranges::max_element(scores);
  T total = 0, total_error = 0, flushed = 0, worst = 0;
  const auto absolute = [&](std::size_t i) {
    const bool small = arithmetic.rounds && result[i].value < T(flushed_below);
    return small && scores[i] > -std::numeric_limits<T>::infinity() ? T(flushed_below) : T(0);
  };
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T argument = scores[i] - largest;
    const T apart = 4 * score_error;  // of two scores, and e^x - 1 <= 2 x
    result[i].value = exp(argument);
    result[i].error = exponential_error(argument, argument_roundings, arithmetic) + apart;
    const T in_sum = exponential_error(argument, argument_roundings, arithmetic, n) + apart;
    total += result[i].value;
    total_error += result[i].value * in_sum;
    flushed += absolute(i);
    worst = std::max(worst, in_sum);
  }
  // Sums, as many products with a running maximum's correction, and the quotient.
  const double roundings = 2 * (n - 1) + quotient_roundings;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T share = result[i].value / total, relative = result[i].error, kept = absolute(i);
    const T apart = (total_error + relative * total + flushed) / (total * (1 - worst) - flushed);
    if (worst > T(0.5)) {
      result[i] = {share, T(1)};
    } else {
      result[i] = rounded(Ball<T>{share, share * apart + 2 * kept}, arithmetic, roundings);
    }
  }
}

}  // namespace indexpool::reference
