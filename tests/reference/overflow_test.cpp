// Where a correct binary32 program may overflow, anything may come out; elsewhere nothing is
// forgiven.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/indexer.hpp"

#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

constexpr double largest = 0x1.fffffep127;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t open_elements(const Bounded& bounds) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bounds.value.size(); ++i) {
    EXPECT_TRUE(std::isfinite(bounds.value[i]));
    count += is_open(bounds.low[i], bounds.high[i]) ? 1 : 0;
  }
  return count;
}

IndexerInputs one_pool_of(double key, const char* mode) {
  IndexerInputs inputs = random_inputs({}, numeric_mode(mode));
  for (std::int64_t i = 0; i < 4 * 32; ++i) inputs.keys.set(i, key);
  return inputs;
}

TEST(Overflow, OnlyAnOpenElementAdmitsNotANumber) {
  EXPECT_FALSE(admits(-1, 1, nan));
  EXPECT_FALSE(admits(0, HUGE_VAL, nan));
  EXPECT_TRUE(admits(-HUGE_VAL, HUGE_VAL, nan));
}

TEST(Overflow, APoolOfKeysNearTheLargestNumberIsOpenAndItsNeighbourIsNot) {
  for (const char* mode : {"bf16", "vllm_fp8", "int8"}) {
    const IndexerInputs inputs = one_pool_of(3e38, mode);
    const Bounded rotated = pool(inputs).rotated;
    EXPECT_EQ(open_elements(rotated), 32u) << mode;
    EXPECT_TRUE(is_open(rotated.low[0], rotated.high[0])) << mode;
    EXPECT_FALSE(is_open(rotated.low[32], rotated.high[32])) << mode;
  }
}

// Weights that are divided before they are multiplied keep the sum below the largest key.
TEST(Overflow, NormalisedWeightsKeepAPoolInRange) {
  EXPECT_EQ(open_elements(pool(one_pool_of(3e38, "hf_f32")).rotated), 0u);
}

// Four keys of 2^125 add up to 2^127, but 32 of the rotation to 2^130.
TEST(Overflow, TheRotationOverflowsBeforeThePoolDoes) {
  EXPECT_EQ(open_elements(pool(one_pool_of(0x1p125, "bf16")).rotated), 0u);
  const Pooled quantised = pool(one_pool_of(0x1p125, "vllm_fp8"));
  EXPECT_EQ(open_elements(quantised.pooled), 0u);
  EXPECT_EQ(open_elements(quantised.rotated), 32u);
}

TEST(Overflow, AnOpenVectorHasAnyScaleAndAnyCode) {
  const std::vector<double> low{-HUGE_VAL, 1}, high{HUGE_VAL, 1};
  const NumericMode& mode = numeric_mode("vllm_fp8");
  const Range scale = scale_enclosure(low, high, mode);
  EXPECT_TRUE(is_open(scale.low, scale.high));
  const Range code = code_enclosure(low[0], high[0], 1, mode);
  EXPECT_TRUE(is_open(code.low, code.high));
  // The other element is judged all the same.
  const Range one = code_enclosure(low[1], high[1], 1, mode);
  EXPECT_EQ(one.low, 1);
  EXPECT_EQ(one.high, 1);
}

struct TwoHeads {
  std::vector<double> queries, head_weights{1, -1}, pools, query_scales, pool_scales;
  LogitOperands view() const {
    return {2, 2, queries, query_scales, head_weights, 1, pools, pool_scales};
  }
  Bounded logits_of() const {
    const std::vector<std::int64_t> visible{static_cast<std::int64_t>(pools.size() / 2)};
    return logits(view(), visible, f32_any_order());
  }
};

TEST(Overflow, ALogitIsOpenWhereADotProductOverflows) {
  TwoHeads o;
  o.queries = {1e19, 1e19, 1, 1};
  o.pools = {1, 2, 3e19, 3e19};
  const Bounded result = o.logits_of();
  EXPECT_FALSE(is_open(result.low[0], result.high[0]));
  EXPECT_TRUE(is_open(result.low[1], result.high[1]));
}

// inf * 0 and inf - inf: what an earlier overflow left behind.
TEST(Overflow, ALogitIsOpenWhereAnOperandIsNoNumber) {
  TwoHeads o;
  o.queries = {0, 1, 1, 1};
  o.pools = {HUGE_VAL, 1, nan, 1, 1, 1};
  const Bounded result = o.logits_of();
  EXPECT_TRUE(is_open(result.low[0], result.high[0]));
  EXPECT_TRUE(is_open(result.low[1], result.high[1]));
  EXPECT_FALSE(is_open(result.low[2], result.high[2]));
}

// The scales may be multiplied in before the products are added up.
TEST(Overflow, ALogitIsOpenWhereAScaleAppliedEarlyOverflows) {
  TwoHeads o;
  o.queries = o.pools = {1e15, 1e15, 1e15, 1e15};
  o.query_scales = {1e10, 1};
  o.pool_scales = {1, 1e-30};
  const Bounded result = o.logits_of();
  EXPECT_TRUE(is_open(result.low[0], result.high[0]));
}

// A naive binary32 program with one accumulator, for operands of any magnitude.
RC_GTEST_PROP(Overflow, ABinary32ProgramLiesInTheEnclosureUpToTheLargestNumber,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(20, 127.9);
  TwoHeads o;
  const auto draw = [&](double share) {
    const double sign = random() % 2 == 0 ? 1 : -1;
    return round_to(DType::f32, sign * std::exp2(exponent(random) * share));
  };
  for (int i = 0; i < 4; ++i) o.queries.push_back(draw(0.5));
  for (int i = 0; i < 16; ++i) o.pools.push_back(draw(0.5));
  o.head_weights = {draw(0.2), draw(0.2)};
  const Bounded bounds = o.logits_of();
  for (std::size_t p = 0; p < 8; ++p) {
    float total = 0;
    for (std::size_t h = 0; h < 2; ++h) {
      float dot = 0;
      for (std::size_t c = 0; c < 2; ++c) {
        dot += static_cast<float>(o.queries[h * 2 + c]) * static_cast<float>(o.pools[p * 2 + c]);
      }
      total += static_cast<float>(o.head_weights[h]) * (dot < 0 ? 0 : dot);
    }
    RC_ASSERT(admits(bounds.low[p], bounds.high[p], static_cast<double>(total)));
    RC_CLASSIFY(is_open(bounds.low[p], bounds.high[p]), "open");
  }
}

TEST(Overflow, JustBelowTheLimitNothingIsOpen) {
  TwoHeads o;
  o.queries = {largest / 8, 0, 0, 0};
  o.pools = {1, 0};
  const Bounded result = o.logits_of();
  EXPECT_EQ(open_elements(result), 0u);
}

}  // namespace
}  // namespace indexpool::reference
