// The narrow floating-point formats and their conversions from and to double. Internal to the
// layer.
#pragma once

#include <cstdint>

#include "indexpool/model/dtype.hpp"

namespace indexpool {

// Codes without their sign bit.
struct NarrowFormat {
  int exponent_bits, mantissa_bits, bias;
  std::uint32_t largest;   // the largest finite value
  std::uint32_t overflow;  // what anything that rounds beyond it becomes
  std::uint32_t nan;       // what NaN becomes
  bool infinities;         // the code after `largest` is infinity
};

const NarrowFormat& narrow_format(DType dtype);  // of bf16, f16, e4m3 or e5m2

// Round to nearest, ties to even, once.
std::uint32_t encode(const NarrowFormat& format, double value);
double decode(const NarrowFormat& format, std::uint32_t code);  // exact

}  // namespace indexpool
