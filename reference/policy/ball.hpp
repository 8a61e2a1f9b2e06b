// A number and how far a correct implementation's may be from it, and the rounding model of the
// published forms of pooling. Internal to the layer.
//
// Every formula is written once and evaluated twice: as binary32 implementations may (`rounds`), or
// exactly, where only the errors of T itself remain. Model of binary32: round to nearest, subnormal
// numbers kept (an exponential or a sigmoid may be flushed), sums and products in any order, fused
// or not. Where a magnitude may reach 2^128, the ball is open: anything may come out.
#pragma once

#include <cmath>
#include <limits>

#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {

struct Arithmetic {
  bool rounds = true;

  // Relative error of n binary32 roundings.
  double relative(double n) const { return rounds ? gamma(n) : 0; }
  // Absolute error of n results that may be subnormal.
  double absolute(double n) const { return rounds ? n * f32_subnormal : 0; }
};
inline constexpr Arithmetic in_binary32{true};
inline constexpr Arithmetic exactly{false};

template <class T>
struct Ball {
  T value{}, error{};

  T low() const { return value - error; }
  T high() const { return value + error; }
  T magnitude() const {
    using std::abs;
    return abs(value) + error;
  }
  bool open() const { return error == std::numeric_limits<T>::infinity(); }
};

// Keeps a finite value, which is only of interest to people.
template <class T>
Ball<T> open_ball(const T& value) {
  using std::isfinite;
  return {isfinite(value) ? value : T(0), std::numeric_limits<T>::infinity()};
}

// Error of T itself in `operations` operations on numbers of this magnitude.
template <class T>
T own(double operations, const T& magnitude) {
  return T(operations * epsilon<T>()) * magnitude;
}

// `x` after n roundings, the subnormal ones among them included, of numbers up to `magnitude`
// (at least that of x itself).
template <class T>
Ball<T> rounded(const Ball<T>& x, Arithmetic arithmetic, double n, const T& magnitude) {
  if (x.open()) return x;
  if (arithmetic.rounds && may_overflow_f32(magnitude)) return open_ball(x.value);
  if (magnitude == 0) return x;
  return {x.value, x.error + T(arithmetic.relative(n)) * magnitude + own(2 * n + 8, magnitude) +
                       arithmetic.absolute(n)};
}
template <class T>
Ball<T> rounded(const Ball<T>& x, Arithmetic arithmetic, double n) {
  return rounded(x, arithmetic, n, x.magnitude());
}

}  // namespace indexpool::reference
