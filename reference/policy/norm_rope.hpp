// RMSNorm and rotation of a pooled vector. Internal to the layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "indexpool/reference/policy/ball.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {

// 1 / sqrt(sum of squares / D + eps): squares and sums in any order, a quotient or product for the
// mean, eps, then rsqrt.approx (1.515 ulp, measured) or a root and a quotient.
template <class T>
Ball<T> inverse_norm(const std::vector<Ball<T>>& x, double eps, Arithmetic arithmetic) {
  using std::abs;
  using std::sqrt;
  const double d = static_cast<double>(x.size());
  T value = 0, least = 0, most = 0;
  for (const Ball<T>& c : x) {
    const T inner = std::max(T(abs(c.value) - c.error), T(0)), outer = c.magnitude();
    value += c.value * c.value;
    least += inner * inner;
    most += outer * outer;
  }
  const T exact = 1 / sqrt(T(value / d + eps));
  if (!(most < std::numeric_limits<T>::infinity())) return open_ball(exact);
  if (arithmetic.rounds && may_overflow_f32(most)) return open_ball(exact);
  const T slack = T(arithmetic.relative(d + quotient_roundings + 1)) + own(d + 8, T(1));
  const T underflow = arithmetic.absolute(d + 1);
  const T smallest = (least / d + eps) * (1 - slack) - underflow;
  const T largest = (most / d + eps) * (1 + slack) + underflow;
  if (!(smallest > T(arithmetic.rounds ? f32_smallest_normal : 0))) return open_ball(exact);
  const T error = std::max(T(1 / sqrt(smallest) - exact), T(exact - 1 / sqrt(largest)));
  return rounded(Ball<T>{exact, error}, arithmetic, 2 + quotient_roundings);
}

// x / norm * norm_weight, the products in any order.
template <class T>
Ball<T> normed(const Ball<T>& x, const Ball<T>& inverse, const T& norm_weight,
               Arithmetic arithmetic) {
  using std::abs;
  const T value = x.value * inverse.value * norm_weight, w = abs(norm_weight);
  if (x.open() || inverse.open()) return open_ball(value);
  const T scale = inverse.magnitude(), size = x.magnitude();
  if (size == 0) return {};
  if (arithmetic.rounds && may_overflow_f32(T(std::max({T(w * scale), T(w * size), scale})))) {
    return open_ball(value);
  }
  const T error = (x.error * scale + abs(x.value) * inverse.error) * w;
  // The first product may be subnormal, and the second enlarge its error.
  const T underflow = T(arithmetic.absolute(1)) * (w + scale + size);
  return rounded(Ball<T>{value, error + underflow}, arithmetic, 2);
}

// The trailing `rope_dims` channels in pairs (x, y) -> (x cos - y sin, x sin + y cos).
template <class T>
void rotate_pairs(std::vector<Ball<T>>& x, const NormRope& norm, std::int64_t group,
                  Arithmetic arithmetic) {
  using std::abs;
  const auto turned = [&](const Ball<T>& a, const T& p, const Ball<T>& b, const T& q) {
    const Ball<T> sum{a.value * p + b.value * q, a.error * abs(p) + b.error * abs(q)};
    if (a.open() || b.open()) return open_ball(sum.value);
    return rounded(sum, arithmetic, 2, T(a.magnitude() * abs(p) + b.magnitude() * abs(q)));
  };
  const std::size_t first = x.size() - static_cast<std::size_t>(norm.rope_dims);
  for (std::int64_t i = 0; i < norm.rope_dims; i += 2) {
    const std::int64_t at = group * norm.rope_dims + i;
    const T cosine = norm.rope.at(at), sine = norm.rope.at(at + 1);
    Ball<T>& a = x[first + static_cast<std::size_t>(i)];
    Ball<T>& b = x[first + static_cast<std::size_t>(i) + 1];
    const Ball<T> before = a;
    a = turned(a, cosine, b, T(-sine));
    b = turned(before, sine, b, cosine);
  }
}

template <class T>
void norm_and_rotate(std::vector<Ball<T>>& x, const NormRope& norm, std::int64_t group,
                     Arithmetic arithmetic) {
  if (norm.norm_weight.empty()) return;
  const auto inverse = inverse_norm(x, static_cast<double>(norm.eps), arithmetic);
  for (std::size_t c = 0; c < x.size(); ++c) {
    x[c] = normed(x[c], inverse, T(norm.norm_weight.at(static_cast<std::int64_t>(c))), arithmetic);
  }
  rotate_pairs(x, norm, group, arithmetic);
}

}  // namespace indexpool::reference
