// Scales and codes: exact rules, binary32 programs inside, wrong constants outside.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {
namespace {

constexpr const char* quantised_modes[] = {"vllm_fp8", "sglang_fp8", "int8"};

std::vector<double> any_vector(const NumericMode& mode) {
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  std::normal_distribution<double> normal;
  const double scale = std::exp2(*rc::gen::inRange(-30, 30));
  const auto size = *rc::gen::element<std::size_t>(1, 2, 32, 128);
  std::vector<double> x(size);
  for (double& value : x) value = round_to(mode.pooled, scale * normal(random));
  if (*rc::gen::inRange(0, 4) == 0) x[0] = 448 * std::exp2(*rc::gen::inRange(-20, 20));
  if (*rc::gen::inRange(0, 4) == 0) x[0] = *rc::gen::element(0.0, 1e-30);
  if (*rc::gen::inRange(0, 8) == 0) std::ranges::fill(x, 0);
  return x;
}

float largest_of(const NumericMode& mode) { return mode.cache == DType::e4m3 ? 448.0F : 127.0F; }

float amax_of(const std::vector<double>& x) {
  float amax = 1e-4F;
  for (const double value : x) amax = std::max(amax, std::abs(static_cast<float>(value)));
  return amax;
}

float program_scale(const std::vector<double>& x, const NumericMode& mode, bool reciprocal) {
  const float largest = largest_of(mode);
  const float ratio = reciprocal ? amax_of(x) * (1 / largest) : amax_of(x) / largest;
  return mode.scale == ScaleRule::amax ? ratio : std::exp2(std::ceil(std::log2(ratio)));
}

RC_GTEST_PROP(Quantiser, EnclosuresContainBinary32Programs, (bool divide, bool reciprocal)) {
  const auto& mode = numeric_mode(*rc::gen::elementOf(
      std::vector<std::string>(std::begin(quantised_modes), std::end(quantised_modes))));
  const auto x = any_vector(mode);
  const float scale = program_scale(x, mode, reciprocal);
  const auto scales = scale_enclosure(x, x, mode);
  RC_ASSERT(static_cast<double>(scale) >= scales.low);
  RC_ASSERT(static_cast<double>(scale) <= scales.high);
  for (const double value : x) {
    const auto element = static_cast<float>(value);
    const float ratio = divide ? element / scale : element * (1 / scale);
    const double code = round_to(mode.cache, static_cast<double>(ratio));
    const auto codes = code_enclosure(value, value, static_cast<double>(scale), mode);
    RC_ASSERT(code >= codes.low);
    RC_ASSERT(code <= codes.high);
  }
}

RC_GTEST_PROP(Quantiser, OwnAnswerLiesInItsEnclosures, ()) {
  for (const char* name : quantised_modes) {
    const auto& mode = numeric_mode(name);
    const auto x = any_vector(mode);
    const auto answer = quantise(x, mode);
    const auto scales = scale_enclosure(x, x, mode);
    RC_ASSERT(answer.scale >= scales.low);
    RC_ASSERT(answer.scale <= scales.high);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto codes = code_enclosure(x[i], x[i], answer.scale, mode);
      RC_ASSERT(answer.codes[i] >= codes.low);
      RC_ASSERT(answer.codes[i] <= codes.high);
    }
  }
}

// E4M3: 2^-4 relative for normals, 2^-10 scales below; int8: half a scale. The quotient's own
// rounding adds up to 127 u scales to int8's half.
RC_GTEST_PROP(Quantiser, ErrsByNoMoreThanHalfACode, ()) {
  for (const char* name : quantised_modes) {
    const auto& mode = numeric_mode(name);
    const auto x = any_vector(mode);
    const auto answer = quantise(x, mode);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = std::abs(x[i] - answer.codes[i] * answer.scale);
      const double bound = mode.cache == DType::i8
                               ? answer.scale / 2
                               : std::max(std::abs(x[i]) / 16, answer.scale / 1024);
      RC_ASSERT(error <= bound * (1 + 0x1p-15));
    }
  }
}

RC_GTEST_PROP(Quantiser, CodesDoNotChangeWhenAPowerOfTwoScalesTheVector, ()) {
  const auto& mode = numeric_mode("vllm_fp8");
  auto x = any_vector(mode);
  for (double& value : x) value += 1;  // stays above the floor of amax
  const auto before = quantise(x, mode);
  for (double& value : x) value *= 64;
  const auto after = quantise(x, mode);
  RC_ASSERT(after.scale == 64 * before.scale);
  RC_ASSERT(after.codes == before.codes);
}

TEST(Quantiser, PowerOfTwoRuleDecidesByTheMantissaOfAmax) {
  const auto& mode = numeric_mode("vllm_fp8");
  const auto scale = [&](double amax) {
    const std::vector<double> x = {amax};
    const auto range = scale_enclosure(x, x, mode);
    EXPECT_EQ(range.low, range.high) << amax;
    return range.low;
  };
  EXPECT_EQ(scale(448), 1);
  EXPECT_EQ(scale(450), 2);  // the next bf16 number
  EXPECT_EQ(scale(1), 0x1p-8);
  EXPECT_EQ(scale(1.75), 0x1p-8);
  EXPECT_EQ(scale(1.7578125), 0x1p-7);
  EXPECT_EQ(scale(0), 0x1p-22);  // the floor of 1e-4
}

TEST(Quantiser, AmaxInAnIntervalGivesAnIntervalOfScales) {
  const std::vector<double> low = {-3, 440}, high = {2, 452};
  const auto powers = scale_enclosure(low, high, numeric_mode("vllm_fp8"));
  EXPECT_EQ(powers.low, 1);
  EXPECT_EQ(powers.high, 2);
  const auto plain = scale_enclosure(low, high, numeric_mode("sglang_fp8"));
  EXPECT_NEAR(plain.low, 440.0 / 448, 1e-6);
  EXPECT_NEAR(plain.high, 452.0 / 448, 1e-6);
}

TEST(Quantiser, WrongConstantsFallOutside) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const auto& mode = numeric_mode("sglang_fp8");
  std::vector<double> x(128);
  for (double& value : x) value = round_to(DType::bf16, normal(random));
  const auto range = scale_enclosure(x, x, mode);
  const double amax = static_cast<double>(amax_of(x));
  for (const double wrong : {amax / 447, amax / 448 / 2, amax / 448 + 1e-6 * amax / 448, amax}) {
    EXPECT_TRUE(wrong < range.low || wrong > range.high) << wrong;
  }
}

TEST(Quantiser, WrongRoundingFallsOutside) {
  const auto& mode = numeric_mode("vllm_fp8");
  const auto inside = [&](double x, double code) {
    const auto range = code_enclosure(x, x, 1, mode);
    return code >= range.low && code <= range.high;
  };
  EXPECT_TRUE(inside(17, 16));  // a tie goes to the even code
  EXPECT_FALSE(inside(17, 18));
  EXPECT_FALSE(inside(17.9, 16));  // truncation
  EXPECT_TRUE(inside(1000, 448));  // saturates
  EXPECT_FALSE(inside(1000, 416));
  EXPECT_TRUE(inside(-0x1p-11, 0));
}

TEST(Quantiser, CodesOfAnEnclosedElementCoverBothEnds) {
  const auto range = code_enclosure(16.9, 17.1, 1, numeric_mode("vllm_fp8"));
  EXPECT_EQ(range.low, 16);
  EXPECT_EQ(range.high, 18);
}

TEST(Quantiser, ModesWithoutScalesRoundToTheCacheOnly) {
  const std::vector<double> x = {1 + 0x1p-9, 1e6};
  const auto& mode = numeric_mode("bf16");
  EXPECT_EQ(scale_enclosure(x, x, mode).high, 1);
  const auto answer = quantise(x, mode);
  EXPECT_EQ(answer.scale, 1);
  EXPECT_EQ(answer.codes[0], 1);
  EXPECT_EQ(answer.codes[1], round_to(DType::bf16, 1e6));
}

}  // namespace
}  // namespace indexpool::reference
