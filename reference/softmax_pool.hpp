// One channel of one pool: softmax over its tokens' scores, weighted sum of their keys, and what
// binary32 implementations of it may answer. Internal to the layer.
//
// Model of an implementation's weight: exp(z_j - m) is computed with relative error e^eta_j - 1,
//   |eta_j| <= argument_roundings u |z_j - m| + exp_calls 2 exp_ulps u,
// for any shift m common to the pool (its error cancels between numerator and denominator), and a
// result below the normal range may be flushed to zero. Then the identity
//   y~ - y = sum_j w_j omega_j (v_j - y) / sum_j w_j (1 + omega_j),  omega_j = e^eta_j - 1
// is exact: the error is weighted by deviations from y and vanishes when the keys agree.
// Subnormal sums are kept (no flushing but of weights). Where sum_j w_j |v_j| may reach 2^128, the
// result is open.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {

// expf of CUDA: 1.931 ulp worst over all binary32 arguments (measured on an H200; exp2f 2.055, with
// argument scaling counted below); libm and SLEEF: 1 ulp. An ulp is at most 2 u.
inline constexpr double exp_ulps = 2.1;
// Subtraction of the maximum, product with log2(e), and that constant's own rounding.
inline constexpr int argument_roundings = 3;
// A quotient: correctly rounded, or to 2 ulp (div.full.f32, __fdividef), or by a reciprocal to 1
// ulp (rcp.approx: 0.975 measured) and a product.
inline constexpr int quotient_roundings = 4;

template <class T>
struct SoftmaxTerms {
  std::vector<T> weight;    // exp(z_j - m), unnormalised
  std::vector<T> relative;  // bound on |omega_j|
  std::vector<T> absolute;  // bound on what flushing takes away
  T total{}, worst_relative{}, total_absolute{};
};

// `exp_calls`: exponentials whose product is a weight; 1 for two passes, up to the number of tokens
// when the maximum is updated token by token.
template <class T>
SoftmaxTerms<T> softmax_terms(std::span<const T> scores, int exp_calls) {
  using std::abs;
  using std::exp;
  const T largest = *std::max_element(scores.begin(), scores.end());
  SoftmaxTerms<T> terms;
  for (const T& score : scores) {
    const T argument = score - largest;
    const T weight = exp(argument);
    T relative = 0, absolute = 0;
    if (weight > T(f32_subnormal)) {
      const T eta = u32 * (argument_roundings * abs(argument) + exp_calls * 2 * exp_ulps);
      relative = eta * (1 + eta);  // e^eta - 1 <= eta (1 + eta) for eta < 1
    }
    // Twice the smallest normal: a slightly wrong result may already be flushed.
    if (weight < T(2 * f32_smallest_normal) && argument > -std::numeric_limits<T>::infinity()) {
      absolute = 2 * f32_smallest_normal;
    }
    terms.weight.push_back(weight);
    terms.relative.push_back(relative);
    terms.absolute.push_back(absolute);
    terms.total += weight;
    terms.total_absolute += absolute;
    if (relative > terms.worst_relative) terms.worst_relative = relative;
  }
  return terms;
}

// The quotient sum_j w_j v_j / sum_j w_j, and its magnitude sum_j w_j |v_j| / sum_j w_j.
template <class T>
struct WeightedMean {
  T mean{}, magnitude{};
};
template <class T>
WeightedMean<T> weighted_mean(const SoftmaxTerms<T>& terms, std::span<const double> values) {
  T sum = 0, magnitude = 0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    sum += terms.weight[j] * T(values[j]);
    magnitude += terms.weight[j] * T(std::abs(values[j]));
  }
  return {sum / terms.total, magnitude / terms.total};
}

// Error of T itself in the mean: each of the n terms sees its exponential (at most 4 epsilon, plus
// epsilon |x| with w |x| <= 1/e), and 2n + 2 roundings.
template <class T>
T own_error(const WeightedMean<T>& mean, std::size_t terms) {
  return epsilon<T>() * static_cast<double>(4 * terms + 16) * mean.magnitude;
}

// Sums in binary32, in any order, with or without fma, `roundings` of them between a product and
// the result; before the final rounding to storage.
template <class T>
Enclosed<T> mean_in_f32(const SoftmaxTerms<T>& terms, std::span<const double> values,
                        double roundings) {
  using std::abs;
  const auto exact = weighted_mean(terms, values);
  T deviation = 0, flushed = 0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const T error = terms.weight[j] * terms.relative[j] + terms.absolute[j];
    deviation += error * abs(T(values[j]) - exact.mean);
    flushed += terms.absolute[j] * T(std::abs(values[j]));
  }
  const T least = terms.total * (1 - terms.worst_relative) - terms.total_absolute;
  deviation /= least;
  const T magnitude =
      (exact.magnitude * terms.total * (1 + terms.worst_relative) + flushed) / least;
  if (may_overflow_f32(T(magnitude * terms.total))) return open_around(exact.mean);
  // Products and the quotient may be subnormal; W >= 1 - 3 u, so dividing does not amplify.
  const T underflow = magnitude > 0 ? static_cast<double>(values.size() + 2) * f32_subnormal : 0.0;
  const T error =
      deviation + gamma(roundings) * magnitude + underflow + own_error(exact, values.size());
  return {exact.mean, exact.mean - error, exact.mean + error};
}

// p_j as computed in binary32 by exponential, sum and quotient (or reciprocal and product).
template <class T>
Enclosed<T> probability_in_f32(const SoftmaxTerms<T>& terms, std::size_t j) {
  const std::size_t n = terms.weight.size();
  const T exact = terms.weight[j] / terms.total;
  // p~_j / p_j - 1 = (omega_j - sum_i p_i omega_i) / (1 + ...): only the others' share counts.
  T others = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == j) continue;
    others += terms.weight[i] * (terms.relative[i] + terms.relative[j]) + terms.absolute[i];
  }
  const T relative = others / (terms.total * (1 - terms.worst_relative) - terms.total_absolute);
  const double sums = n > 1 ? gamma(static_cast<double>(n)) : 0;  // n - 1 sums, 1 for a reciprocal
  const T error = exact * (relative + sums * (1 + relative) +
                           static_cast<double>(n > 1 ? 2 * n + 8 : 0) * epsilon<T>()) +
                  2 * terms.absolute[j];
  const Enclosed<T> before{exact, exact > error ? T(exact - error) : T(0), exact + error};
  Enclosed<T> p = round_to_format(before, Format{24, -126, 2, false});
  if (p.high > 1) p.high = 1;  // w_j <= fl(sum): rounding is monotone
  return p;
}

// Probabilities rounded to `storage`, products rounded to `storage`, summed in binary32 in any
// order; before the final rounding. Narrow products are so short that their sum is often exact and
// half-way between two stored numbers: the tie then has one answer.
template <class T>
Enclosed<T> mean_of_rounded_products(const SoftmaxTerms<T>& terms, std::span<const double> values,
                                     const Format& storage) {
  using std::abs;
  Enclosed<T> sum;
  T magnitude = 0;
  int unit = no_bits;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const auto p = round_to_format(probability_in_f32(terms, j), storage);
    const T v = values[j];
    Enclosed<T> product{p.value * v, std::min(T(p.low * v), T(p.high * v)),
                        std::max(T(p.low * v), T(p.high * v))};
    product = round_to_format(product, storage);
    sum.value += product.value;
    sum.low += product.low;
    sum.high += product.high;
    magnitude += std::max(T(abs(product.low)), T(abs(product.high)));
    unit = std::min(unit, unit_between(to_double(product.low), to_double(product.high), storage));
  }
  if (may_overflow_f32(magnitude)) return open_around(weighted_mean(terms, values).mean);
  if (!sums_exactly(to_double(magnitude), unit)) {
    const double additions = static_cast<double>(values.size() - 1);
    const T error = (gamma(additions) + additions * epsilon<T>()) * magnitude;
    sum.low -= error;
    sum.high += error;
  }
  return sum;
}

}  // namespace indexpool::reference
