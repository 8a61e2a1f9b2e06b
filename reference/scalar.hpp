// The scalar types the reference is computed in, and how their results become doubles.
// Internal to the layer.
#pragma once

#include <cmath>
#include <limits>

#include <boost/multiprecision/cpp_bin_float.hpp>

namespace indexpool::reference {

// IEEE binary128. Slower than __float128 but the same on every compiler, without libquadmath.
using Quad = boost::multiprecision::cpp_bin_float_quad;

// A value and the closed interval every correct implementation's result lies in.
template <class T>
struct Enclosed {
  T value{}, low{}, high{};
};

// Where a correct implementation may answer anything (bounded.hpp).
template <class T>
Enclosed<T> open_around(const T& value) {
  return {value, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
}

template <class T>
T epsilon() {
  return std::numeric_limits<T>::epsilon();
}

// Nearest double; for results of a rounding step the conversion is exact.
inline double to_double(double x) { return x; }
inline double to_double(const Quad& x) { return x.convert_to<double>(); }

// Largest double <= x and smallest double >= x.
template <class T>
double double_below(const T& x) {
  const double nearest = to_double(x);
  return T(nearest) > x ? std::nextafter(nearest, -HUGE_VAL) : nearest;
}
template <class T>
double double_above(const T& x) {
  const double nearest = to_double(x);
  return T(nearest) < x ? std::nextafter(nearest, HUGE_VAL) : nearest;
}

}  // namespace indexpool::reference
