// How far exp_f32 is from the true exponential, in units of the result's last place.
#pragma once

#include <cmath>

#include "indexpool/kernels/arithmetic.cuh"

namespace indexpool::kernels {

// Spacing of f32 at the magnitude of `value` (2^-149 among subnormals).
inline double spacing(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

// binary64's exp is within 1 ulp of its own, 2^-29 of an ulp of f32.
inline double exp_error_ulp(float x) {
  const double truth = std::exp(static_cast<double>(x));
  return std::abs(static_cast<double>(simt::exp_f32(x)) - truth) / spacing(truth);
}

}  // namespace indexpool::kernels
