#include "indexpool/kernels/arithmetic.cuh"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "exp_error.hpp"

namespace indexpool::kernels {
namespace {

// Every 997th float on both sides of zero from 2^-149 to the ends of the range.
TEST(Exp, StaysWithinTwoUlp) {
  double worst = 0;
  for (const float end : {-104.0f, 88.7f}) {
    const std::uint32_t sign = std::signbit(end) ? 0x80000000u : 0;
    const std::uint32_t last = std::bit_cast<std::uint32_t>(std::abs(end));
    for (std::uint32_t bits = 0; bits <= last; bits += 997)
      worst = std::max(worst, exp_error_ulp(std::bit_cast<float>(bits | sign)));
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_GT(worst, 0.4);  // an implementation in f32 does round
}

TEST(Exp, EndsOfTheRange) {
  EXPECT_EQ(simt::exp_f32(0.0f), 1.0f);
  EXPECT_EQ(simt::exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(simt::exp_f32(-103.0f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(simt::exp_f32(-104.0f), 0.0f);
  EXPECT_EQ(simt::exp_f32(-1e30f), 0.0f);
  EXPECT_EQ(simt::exp_f32(-INFINITY), 0.0f);
  EXPECT_LT(simt::exp_f32(88.72f), INFINITY);
  EXPECT_EQ(simt::exp_f32(88.73f), INFINITY);
  EXPECT_EQ(simt::exp_f32(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(simt::exp_f32(NAN)));
}

}  // namespace
}  // namespace indexpool::kernels
