// Weighted sums and their division, one channel at a time. Internal to the layer.
//
// Model of an implementation: n products and sums in any order, fused or not; the sum of the
// weights likewise; one quotient of both, or a reciprocal and a product, or weights divided before
// they are multiplied. With N = sum w v, A = sum w |v| (of magnitudes), W = sum w:
//   |y~ - N / W| <= (gamma_(n + quotient) A + underflow) / |W~| + |N / W| |W - W~| / |W~|
// for every W~ the sum of the weights may have come out as; for positive weights this is
// gamma_(2n + 3) A / W (Higham 3.1 for both sums).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "indexpool/reference/policy/ball.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {

// What divides a group's weighted sums.
template <class T>
struct Denominator {
  Ball<T> sum;
  char fallback = 0;  // PolicyPooled::fallback
  bool open = false;  // the sum may overflow, or so nearly that its reciprocal is not normal
};

// Are sums of these numbers exact in binary32, in any order?
template <class T>
bool sums_exactly_in_f32(std::span<const Ball<T>> numbers, double magnitude) {
  int unit = no_bits;
  for (const Ball<T>& x : numbers) unit = std::min(unit, lowest_bit(to_double(x.value)));
  return sums_exactly(magnitude, unit);
}

// Rounded once more to binary32.
template <class T>
Ball<T> around(const Ball<T>& x) {
  return {x.value, std::max(T(x.value - round_f32(x.low())), T(round_f32(x.high()) - x.value))};
}

template <class T>
Denominator<T> denominator_of(std::span<const Ball<T>> pool_weights, Arithmetic arithmetic) {
  using std::abs;
  Denominator<T> result;
  T magnitude = 0;
  for (const Ball<T>& w : pool_weights) {
    result.open = result.open || w.open();
    result.sum.value += w.value;
    result.sum.error += w.error;
    magnitude += w.magnitude();
  }
  result.open = result.open || (arithmetic.rounds && !(magnitude < T(0x1p126)));
  if (result.open) return result;
  const bool exact = arithmetic.rounds && sums_exactly_in_f32(pool_weights, to_double(magnitude));
  if (!exact) {
    // All additions but the last, which rounds what the others left.
    const double additions = std::max(static_cast<double>(pool_weights.size()) - 2, 0.0);
    result.sum.error +=
        T(arithmetic.relative(additions)) * magnitude + own(additions + 4, magnitude);
    if (arithmetic.rounds) result.sum = around(result.sum);
  }
  const T centre = abs(result.sum.value), smallest = f32_smallest_normal;
  if (centre + result.sum.error < smallest) {
    result.fallback = 1;
  } else if (!(centre - result.sum.error >= smallest)) {
    result.fallback = 2;
  }
  return result;
}

// One channel of a group: its weights and its vectors' values.
template <class T>
struct Sums {
  Ball<T> sum;    // before any rounding of the sum itself
  T magnitude{};  // sum |w v|
  T plain{};      // sum v
  T plain_magnitude{};
  int products = 0;  // that are not exactly zero
};
template <class T, class Weight, class Value>
Sums<T> sums_of(std::size_t count, const Weight& weight, const Value& value) {
  using std::abs;
  Sums<T> result;
  for (std::size_t i = 0; i < count; ++i) {
    const Ball<T>& w = weight(i);
    const T v = value(i), size = abs(v), product = w.value * v;
    if (w.open()) result.sum.error = w.error;
    if (!result.sum.open()) {
      result.sum.value += product;
      result.sum.error += w.error * size;
    }
    result.magnitude += abs(product);
    result.plain += v;
    result.plain_magnitude += size;
    result.products += product != 0;
  }
  return result;
}

// The mean of n values: sums, then a quotient or a product with 1 / n.
template <class T>
Ball<T> mean_ball(const Sums<T>& sums, std::size_t count, Arithmetic arithmetic) {
  const double n = static_cast<double>(count);
  if (arithmetic.rounds && may_overflow_f32(sums.plain_magnitude)) return open_ball(sums.plain);
  return rounded(Ball<T>{sums.plain / n, T(0)}, arithmetic, n - 1 + quotient_roundings,
                 T(sums.plain_magnitude / n));
}

// Products short enough to be added without rounding: half-way between two stored numbers the sum
// then has one answer.
template <class T, class Weight, class Value>
bool adds_exactly(const Sums<T>& sums, std::size_t count, const Weight& weight,
                  const Value& value) {
  if (sums.sum.error != 0) return false;
  int unit = no_bits;
  for (std::size_t i = 0; i < count; ++i) {
    unit = std::min(unit, lowest_bit(to_double(weight(i).value)) + lowest_bit(value(i)));
  }
  return sums_exactly(to_double(sums.magnitude), unit);
}

// Before the last of n roundings, with `more` others.
template <class T>
Ball<T> before_last_rounding(const Sums<T>& sums, Arithmetic arithmetic, double more = 0) {
  const double roundings = std::max(sums.products - 1, 0) + more;
  return rounded(sums.sum, arithmetic, roundings, T(sums.magnitude + sums.sum.error));
}

// Where rounding decides whether the sum of the weights is normal: the mean, and every quotient by
// a normal number that the sum may be.
template <class T>
Ball<T> either(const Ball<T>& top, const Ball<T>& weights, const Ball<T>& mean,
               Arithmetic arithmetic) {
  using std::abs;
  const T smallest = f32_smallest_normal;
  if (top.open() || mean.open() || may_overflow_f32(T(top.magnitude() / smallest))) {
    return open_ball(mean.value);
  }
  const T most = abs(weights.value) + weights.error;
  const auto nearest = [&](const T& x) { return T(x / (x < 0 ? most : smallest)); };
  T low = -nearest(T(-top.low())), high = nearest(top.high());
  if (weights.value < 0) {
    std::swap(low, high);
    low = -low, high = -high;
  }
  if (abs(weights.value) <= weights.error) {
    high = top.magnitude() / smallest;
    low = -high;
  }
  const T value = abs(weights.value) < smallest ? mean.value : T(top.value / weights.value);
  const auto apart = [&](const T& x) { return T(abs(T(x - value))); };
  const T error = std::max({apart(low), apart(high), apart(mean.low()), apart(mean.high())});
  return rounded(Ball<T>{value, error}, arithmetic, quotient_roundings);
}

template <class T>
Ball<T> divided(const Sums<T>& sums, std::size_t count, const Denominator<T>& by,
                Arithmetic arithmetic) {
  using std::abs;
  if (by.open) return open_ball(sums.plain);
  if (by.fallback == 1) return mean_ball(sums, count, arithmetic);
  const Ball<T> top = before_last_rounding(sums, arithmetic, 1 + quotient_roundings);
  if (by.fallback == 2) {
    return either(top, by.sum, mean_ball(sums, count, arithmetic), arithmetic);
  }
  const T value = top.value / by.sum.value, least = abs(by.sum.value) - by.sum.error;
  if (top.open()) return open_ball(value);
  // The quotient may be subnormal, and so may weights that are divided first.
  const T underflow = T(arithmetic.absolute(1)) * (sums.plain_magnitude + 1);
  return rounded(Ball<T>{value, (top.error + abs(value) * by.sum.error) / least + underflow},
                 arithmetic, 0);
}

}  // namespace indexpool::reference
