// Products and sums of many terms with their errors in binary32. Internal to the layer.
#pragma once

#include <cmath>

#include "indexpool/reference/policy/ball.hpp"

namespace indexpool::reference {

template <class T>
Ball<T> stored_ball(float x) {
  return std::isfinite(x) ? Ball<T>{T(x), T(0)} : open_ball(T(0));
}

// x y, rounded once.
template <class T>
Ball<T> times(const Ball<T>& x, const Ball<T>& y, Arithmetic arithmetic) {
  using std::abs;
  const T value = x.value * y.value;
  if (x.open() || y.open()) return open_ball(value);
  const T error = abs(x.value) * y.error + abs(y.value) * x.error + x.error * y.error;
  return rounded(Ball<T>{value, error}, arithmetic, 1);
}

// A sum of products: its terms' values, magnitudes, errors of their own, and how many there are.
template <class T>
struct Terms {
  T value{}, magnitude{}, error{};
  double count = 0;
  bool open = false;

  void add(const Ball<T>& x, const T& by) {
    using std::abs;
    open = open || x.open();
    if (open) return;
    value += x.value * by;
    error += x.error * abs(by);
    magnitude += abs(T(x.value * by));
    ++count;
  }
  // Added in any order, with `more` roundings on the way of each term.
  Ball<T> sum(Arithmetic arithmetic, double more = 0) const {
    if (open) return open_ball(value);
    return rounded(Ball<T>{value, error}, arithmetic, count + more, T(magnitude + error));
  }
};

}  // namespace indexpool::reference
