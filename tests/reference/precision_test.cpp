// The same templates in binary64 and binary128: a check on the reference's own rounding.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/golden.hpp"

#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

// Both enclose the same truth, so they meet, and neither is wider by more than `slack` (relative).
void expect_same(const Bounded& binary64, const Bounded& binary128, double slack) {
  ASSERT_EQ(binary64.shape, binary128.shape);
  for (std::size_t i = 0; i < binary64.value.size(); ++i) {
    if (std::isnan(binary64.value[i])) continue;
    ASSERT_LE(binary64.low[i], binary128.value[i]) << i;
    ASSERT_GE(binary64.high[i], binary128.value[i]) << i;
    const double size = std::abs(binary128.low[i]) + std::abs(binary128.high[i]);
    ASSERT_NEAR(binary64.low[i], binary128.low[i], slack * size) << i;
    ASSERT_NEAR(binary64.high[i], binary128.high[i], slack * size) << i;
  }
}

TEST(Precision, PoolingAgrees) {
  Draw draw;
  draw.lengths = {21, 9};
  draw.dim = 16;
  for (const bool extreme : {false, true}) {
    draw.extreme_gates = extreme;
    for (const auto& mode : numeric_modes()) {
      const auto in = random_inputs(draw, mode);
      const auto a = pool(in), b = pool(in, Precision::binary128);
      // Relative to the largest key of a pool, not to a sum that cancels: 1e-11 is ample for both.
      expect_same(a.exact, b.exact, 1e-11);
      // Stored numbers: equal, unless an end lies within 1e-15 of a rounding's midpoint.
      expect_same(a.pooled, b.pooled, mode.storage == DType::f32 ? 0x1p-22 : 0);
      expect_same(a.rotated, b.rotated, mode.storage == DType::f32 ? 0x1p-22 : 0);
    }
  }
}

TEST(Precision, ExactMeanOfBinary64HoldsThatOfBinary128) {
  Draw draw;
  draw.lengths = {64};
  draw.key_scale = 100;
  const auto in = random_inputs(draw, numeric_mode("bf16"));
  const auto a = pool(in).exact, b = pool(in, Precision::binary128).exact;
  for (std::size_t i = 0; i < a.value.size(); ++i) {
    ASSERT_LE(a.low[i], b.low[i]);
    ASSERT_GE(a.high[i], b.high[i]);
    ASSERT_LE(b.high[i] - b.low[i], std::abs(b.value[i]) * 0x1p-51);
  }
}

TEST(Precision, RotatedQueriesAgree) {
  const auto in = random_inputs(Draw{}, numeric_mode("vllm_fp8"));
  expect_same(rotate_queries(in), rotate_queries(in, Precision::binary128), 0);
}

TEST(Precision, GoldenCasesAgree) {
  for (const char* name : {"glm53_small_f32", "fp8_small", "ties_f32", "decode_f32"}) {
    const auto test_case =
        read_case(std::string(INDEXPOOL_TEST_DATA) + "/golden/" + name + ".safetensors");
    const auto a = compare_expected(test_case);
    const auto b = compare_expected(test_case, Precision::binary128);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(b[i].outside, 0) << name << " " << b[i].step << ": " << b[i].first_fault;
      EXPECT_EQ(a[i].decidable, b[i].decidable) << name << " " << b[i].step;
      EXPECT_NEAR(a[i].utilisation, b[i].utilisation, 1e-6) << name << " " << b[i].step;
    }
  }
}

}  // namespace
}  // namespace indexpool::reference
