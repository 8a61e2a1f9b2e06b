#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "exp_error.hpp"

namespace indexpool::kernels {
namespace {

TEST(ExpExhaustive, EveryFloatIsWithinTwoUlp) {
  double worst = 0;
  float at = 0;
  for (const float end : {-104.0f, 88.7f}) {
    const std::uint32_t sign = std::signbit(end) ? 0x80000000u : 0;
    const std::uint32_t last = std::bit_cast<std::uint32_t>(std::abs(end));
    for (std::uint32_t bits = 0; bits <= last; ++bits) {
      const float x = std::bit_cast<float>(bits | sign);
      const double error = exp_error_ulp(x);
      if (error <= worst) continue;
      worst = error;
      at = x;
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 2.0) << "at " << at;
}

}  // namespace
}  // namespace indexpool::kernels
