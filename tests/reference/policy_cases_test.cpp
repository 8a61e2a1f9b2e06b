// The published forms worked by hand, where they break down, and what is refused.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"

#include "policy_by_hand.hpp"
#include "policy_inputs.hpp"

namespace indexpool::reference {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

PolicyPooled pool_of(const PoolingInputs& in) { return pool(in, stored(pool_weights(in))); }

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance) << i;
  }
}

TEST(PolicyByHand, CompositeIsASoftmaxOverRoles) {
  auto in = one_group("composite", 1, {1, 2, 3, 4});
  in.weights = RoleMatrix{f32({1, 4}, {0, std::log(2), std::log(3), std::log(4)})};
  expect_near(pool_weights(in).value, {0.1, 0.2, 0.3, 0.4}, 1e-7);
  EXPECT_NEAR(pool_of(in).exact.value[0], 3, 1e-7);
}

TEST(PolicyByHand, CompositeFixedHasTheWeightsOfTheFirstStage) {
  auto in = one_group("composite_fixed", 1, {10, 20, 30, 40});
  in.weights = GivenWeights{f32({1, 4}, {0.4, 0.3, 0.2, 0.1})};
  const auto pooled = pool_of(in);
  EXPECT_NEAR(pooled.exact.value[0], 20, 1e-6);
  EXPECT_NEAR(pooled.weight_sum.value[0], 0, 1e-7);
}

PoolingInputs additive_by_hand(const std::string& policy) {
  auto in = one_group(policy, 2, {1, 0, 0, 1, -1, 0, 0, 0});
  AdditiveTerms terms;
  terms.queries = f32({1, 2}, {3, 0});
  terms.distances = f32({1, 4}, {0, 2, 4, 0});
  terms.ages = f32({1, 4}, {0, 16, 0, 32});
  terms.raw_cosine = policy == "additive_raw";
  in.weights = terms;
  return in;
}

TEST(PolicyByHand, AdditiveAddsPositionContentAndAge) {
  const double w1 = 0.5 * std::exp(-0.5) + 0.15 + 0.2 * std::exp(-1);
  const double w2 = 0.5 * std::exp(-2) + 0.2, w3 = 0.5 + 0.15 + 0.2 * std::exp(-2);
  const auto in = additive_by_hand("additive");
  expect_near(pool_weights(in).value, {1, w1, w2, w3}, 1e-6);
  const double sum = 1 + w1 + w2 + w3;
  expect_near(pool_of(in).exact.value, {(1 - w2) / sum, w1 / sum}, 1e-6);
}

TEST(PolicyByHand, RawCosinesMayMakeAWeightNegative) {
  const auto weights = pool_weights(additive_by_hand("additive_raw"));
  const double w2 = 0.5 * std::exp(-2) - 0.3 + 0.2;
  expect_near(weights.value,
              {1, 0.5 * std::exp(-0.5) + 0.2 * std::exp(-1), w2, 0.5 + 0.2 * std::exp(-2)}, 1e-6);
  EXPECT_LT(w2, 0);
}

// Cosines 1 and -0.6: (1, 0) - 0.6 (-3, 4) over 0.4.
TEST(PolicyByHand, RawCosinesLeaveTheRangeOfTheirVectors) {
  const auto pooled = pool_of(cosines_only({1, 0, -3, 4}));
  expect_near(pooled.exact.value, {7, -6}, 1e-5);
  EXPECT_GT(pooled.before.low[0], 1);
}

// 1 and -(1 - 2^-24) leave 2^-24; of three weights rounding may lose it.
TEST(PolicyByHand, RawCosinesThatCancelHaveNoLimit) {
  const auto in = cosines_only({1, 0, -1, 0});
  const std::vector<float> weights = {1, -0x1.fffffep-1F};
  const auto pooled = pool(in, weights);
  EXPECT_EQ(pooled.fallback[0], 0);
  EXPECT_GT(pooled.before.low[0], 0x1p24);
  const std::vector<float> three = {1, -0x1.fffffep-1F, 0x1p-30F};
  EXPECT_EQ(pool(cosines_only({1, 0, -1, 0, 0, 1}), three).fallback[0], 2);
  const auto exact = pool_of(in);  // weights 1 and -1: the mean
  EXPECT_EQ(exact.fallback[0], 1);
  EXPECT_EQ(exact.before.value[0], 0);
}

TEST(PolicyByHand, GatedIsASigmoidOverItsSum) {
  auto in = one_group("gated", 1, {0, std::log(3)});
  GateOperands gate;
  gate.hidden_states = f32({1, 16}, std::vector<double>(16, 0.5));
  std::vector<double> gate_weight(17, 0.25);
  gate_weight[16] = 1;
  gate.gate_weight = f32({1, 17}, gate_weight);
  gate.gate_bias = f32({1}, {-2});  // the hidden part is 16 / 8
  in.weights = gate;
  expect_near(pool_weights(in).value, {0.5, 0.75}, 1e-6);
  EXPECT_NEAR(pool_of(in).exact.value[0], 0.6 * std::log(3), 1e-6);
}

TEST(PolicyByHand, EveryHeadOfATokenHasItsGate) {
  PolicyDraw draw;
  draw.policy = "gated";
  draw.absent = false;
  auto in = random_policy_inputs(draw);
  auto& gate = std::get<GateOperands>(in.weights);
  for (std::int64_t i = 0; i < gate.gate_weight.size(); ++i) gate.gate_weight.set(i, 0);
  gate.gate_bias = f32({2}, {0, std::log(3)});
  const auto weights = pool_weights(in);
  for (std::size_t i = 0; i < weights.value.size(); ++i) {
    EXPECT_NEAR(weights.value[i], i / 4 % 2 == 0 ? 0.5 : 0.75, 1e-6) << i;
  }
}

TEST(PolicyByHand, TfidfMixesAccessesPositionAndContent) {
  auto in = one_group("tfidf", 2, {1, 0, 0, 2});
  AccessTerms terms;
  terms.queries = f32({1, 2}, {5, 0});
  terms.accesses = tensor(DType::i32, {1, 2}, {3, 1});
  terms.groups_accessed = tensor(DType::i32, {1, 2}, {1, 3});
  terms.position_terms = f32({2}, {1, 0.5});
  terms.all_groups = 7;
  in.weights = terms;
  const double w0 = (0.75 * (std::log(4) + 1) + 1 + 1) / 3;
  const double w1 = (0.25 * (std::log(2) + 1) + 0.5 + 0.5) / 3;
  expect_near(pool_weights(in).value, {w0, w1}, 1e-6);
  std::get<AccessTerms>(in.weights).accesses = tensor(DType::i32, {1, 2}, {0, 0});
  expect_near(pool_weights(in).value, {2.0 / 3, 1.0 / 3}, 1e-6);
}

TEST(PolicyByHand, KpoolIsASoftmaxPerChannel) {
  auto in = one_group("kpool", 2, {4, 4, 8, 8});
  in.weights =
      ChannelScores{f32({2, 2}, {0, 0, std::log(3), -HUGE_VAL}), f32({2, 2}, {0, 5, 0, 0})};
  expect_near(pool_weights(in).value, {0.25, 1, 0.75, 0}, 1e-7);
  const auto pooled = pool_of(in);
  expect_near(pooled.exact.value, {7, 4}, 1e-6);
  EXPECT_EQ(pool_weights(in).high[3], 0);
}

// (3, 4, 0, ...) over sqrt(25 / 8); its last pairs turn by a right angle.
TEST(PolicyByHand, CsaNormsAndTurns) {
  auto in = one_group("csa", 16, std::vector<double>(32));
  in.groups[0].absent = 1;
  in.vectors.set(16, nan);
  std::vector<double> row(16, 0);
  row[0] = 3, row[8] = 4, row[9] = 5, row[11] = 6;
  for (std::int64_t c = 0; c < 16; ++c) in.vectors.set(16 + c, row[static_cast<std::size_t>(c)]);
  in.weights = ChannelScores{f32({2, 16}, {}), f32({2, 16}, {})};
  in.norm_rope.norm_weight = f32({16}, std::vector<double>(16, 2));
  in.norm_rope.eps = 0;
  in.norm_rope.rope_dims = 8;
  in.norm_rope.rope = f32({1, 8}, {0, 1, 1, 0, 1, 0, 0.6, 0.8});
  const double scale = 2 / std::sqrt(86.0 / 16);
  const auto pooled = pool_of(in);
  std::vector<double> expected(16, 0);
  expected[0] = 3 * scale, expected[8] = -5 * scale, expected[9] = 4 * scale,
  expected[11] = 6 * scale;
  expect_near(pooled.exact.value, expected, 1e-7);
  expect_near(pooled.before.value, expected, 1e-6);
  EXPECT_NEAR(pooled.weight_sum.value[0], 0, 1e-7);
}

TEST(PolicyByHand, AZeroVectorThroughANormWithoutEpsIsOpen) {
  auto in = one_group("csa", 8, std::vector<double>(16));
  in.weights = ChannelScores{f32({2, 8}, {}), f32({2, 8}, {})};
  in.norm_rope.norm_weight = f32({8}, std::vector<double>(8, 1));
  EXPECT_EQ(pool_of(in).before.high[0], 0);
  in.norm_rope.eps = 0;
  const auto pooled = pool_of(in);
  EXPECT_TRUE(is_open(pooled.before.low[0], pooled.before.high[0]));
}

TEST(PolicyByHand, MeanOfShortNumbersHasOneAnswerEvenHalfWay) {
  auto in = one_group("mean", 1, {1, 1 + 0x1p-7}, "bf16");
  in.weights = GivenWeights{f32({1, 2}, {0.5, 0.5})};
  const auto pooled = pool_of(in);
  EXPECT_EQ(pooled.before.low[0], 1 + 0x1p-8);
  EXPECT_EQ(pooled.before.high[0], 1 + 0x1p-8);
  EXPECT_EQ(pooled.pooled.low[0], 1);  // to even
  EXPECT_EQ(pooled.pooled.high[0], 1);
}

TEST(PolicyByHand, LastIsExactlyTheLastVector) {
  auto in = one_group("last", 1, {7, -2, 0.1, 1.0 / 3});
  in.weights = GivenWeights{f32({1, 4}, {0, 0, 0, 1})};
  const auto pooled = pool_of(in);
  EXPECT_EQ(pooled.before.low[0], in.vectors.at(3));
  EXPECT_EQ(pooled.before.high[0], in.vectors.at(3));
}

TEST(PolicyByHand, PlainRawIsTheSumAsItComes) {
  auto in = one_group("plain_raw", 1, {1, 2, 4, 8}, "bf16");
  in.weights = GivenWeights{f32({1, 4}, {1, -1, 2, 0.5})};
  const auto pooled = pool_of(in);
  EXPECT_EQ(pooled.pooled.low[0], 11);
  EXPECT_EQ(pooled.pooled.high[0], 11);
  EXPECT_EQ(pooled.weight_sum.value[0], 1.5);
}

TEST(PolicyFallback, SumBelowTheNormalNumbersPoolsTheMean) {
  const auto in = cosines_only({1, 0, 5, 2});
  const std::vector<float> below = {0x1p-127F, 0x1p-128F}, at = {0x1p-127F, 0x1p-127F};
  const auto fallen = pool(in, below);
  EXPECT_EQ(fallen.fallback[0], 1);
  EXPECT_EQ(fallen.before.value[0], 3);
  EXPECT_LT(fallen.before.high[0] - fallen.before.low[0], 1e-5);
  // Subnormal numbers add up exactly: 2^-126 is normal.
  EXPECT_EQ(pool(in, at).fallback[0], 0);
  const std::vector<float> none = {0, 0};
  EXPECT_EQ(pool(in, none).fallback[0], 1);
}

// 2^-123, -(2^-123 - 2^-126), -2^-149: forward the sum is 2^-126 - 2^-149 and the mean is pooled;
// first and last first it is 2^-126, and the quotient is.
TEST(PolicyFallback, WhereRoundingDecidesBothAnswersAreAdmitted) {
  const auto in = cosines_only({1, 0, 1, 0, 0x1p20, 0});
  const std::vector<float> weights = {0x1p-123F, 0x1p-126F - 0x1p-123F, -0x1p-149F};
  const float forward = (weights[0] + weights[1]) + weights[2];
  const float other = (weights[0] + weights[2]) + weights[1];
  ASSERT_LT(forward, 0x1p-126F);
  ASSERT_EQ(other, 0x1p-126F);
  const float quotient = (weights[0] + weights[1] + 0x1p20F * weights[2]) / other;
  const float mean = (1 + 1 + 0x1p20F) / 3;
  const auto pooled = pool(in, weights);
  const auto admitted = [&](float x) {
    return admits(pooled.before.low[0], pooled.before.high[0], static_cast<double>(x));
  };
  EXPECT_EQ(pooled.fallback[0], 2);
  EXPECT_TRUE(admitted(quotient));
  EXPECT_TRUE(admitted(mean));
  EXPECT_FALSE(admitted(2 * mean));
}

// Here the sum is 2^-126 and the quotient expected, but first and third first rounding loses
// 2^-149.
TEST(PolicyFallback, TheMeanIsAdmittedWhereTheQuotientIsExpected) {
  const auto in = cosines_only({1, 0, 1, 0, 0, 0, 0x1p20, 0});
  const float small = 0x1.8p-148F;
  const std::vector<float> weights = {0x1p-123F, 0x1p-126F - 0x1p-123F, -small, small};
  ASSERT_LT(((weights[0] + weights[2]) + weights[1]) + weights[3], 0x1p-126F);
  const auto pooled = pool(in, weights);
  EXPECT_EQ(pooled.fallback[0], 2);
  EXPECT_LT(pooled.before.value[0], 2);
  EXPECT_TRUE(admits(pooled.before.low[0], pooled.before.high[0], 0x1p18 + 0.5));
}

TEST(PolicyCosine, OfAZeroVectorIsZero) {
  const auto weights = pool_weights(cosines_only({0, 0, 1, 0}));
  EXPECT_EQ(weights.low[0], 0);
  EXPECT_EQ(weights.high[0], 0);
}

// Squares of 2^-70 vanish and those of 2^70 overflow; next to them nothing is forgiven.
TEST(PolicyCosine, IsOpenWhereASquareLeavesTheNormalNumbers) {
  const auto weights = pool_weights(cosines_only({0x1p-70, 0, 0x1p70, 0, 0x1p-60, 0, 0x1p60, 0}));
  for (const std::size_t i : {0u, 1u}) EXPECT_TRUE(is_open(weights.low[i], weights.high[i])) << i;
  for (const std::size_t i : {2u, 3u}) {
    EXPECT_GT(weights.low[i], 1 - 2e-6) << i;
    EXPECT_LT(weights.high[i], 1 + 2e-6) << i;
  }
}

TEST(PolicyPool, OfAWeightThatIsNoNumberIsOpenAndItsNeighbourIsNot) {
  PolicyDraw draw;
  draw.policy = "composite";
  const auto in = random_policy_inputs(draw);
  auto weights = stored(pool_weights(in));
  weights[0] = std::nanf("");
  const auto pooled = pool(in, weights);
  const auto dim = static_cast<std::size_t>(in.head_dim);
  EXPECT_TRUE(is_open(pooled.before.low[0], pooled.before.high[0]));
  EXPECT_TRUE(is_open(pooled.pooled.low[dim - 1], pooled.pooled.high[dim - 1]));
  EXPECT_FALSE(is_open(pooled.before.low[dim], pooled.before.high[dim]));
}

struct Refusal {
  const char* policy;
  const char* names;
  std::function<void(PoolingInputs&)> spoil;
};

const Refusal refusals[] = {
    {"additive", "vectors: nan at [1, 2]", [](auto& in) { in.vectors.set(34, nan); }},
    {"additive", "queries: inf at [0, 1]",
     [](auto& in) { std::get<AdditiveTerms>(in.weights).queries.set(1, HUGE_VAL); }},
    {"additive", "ages: -1 at [0, 3]",
     [](auto& in) { std::get<AdditiveTerms>(in.weights).ages.set(3, -1); }},
    {"additive", "sigma: 0", [](auto& in) { std::get<AdditiveTerms>(in.weights).sigma = 0; }},
    {"additive", "policy additive: the operands are those of another rule",
     [](auto& in) {
       in.weights = RoleMatrix{};
       in.groups.clear();
     }},
    {"gated", "gate_bias: nan at [1]",
     [](auto& in) { std::get<GateOperands>(in.weights).gate_bias.set(1, nan); }},
    {"gated", "heads 0", [](auto& in) { in.heads = 0; }},
    {"tfidf", "accesses: -1 at [0, 0]",
     [](auto& in) { std::get<AccessTerms>(in.weights).accesses.set(0, -1); }},
    {"tfidf", "all_groups: -1",
     [](auto& in) { std::get<AccessTerms>(in.weights).all_groups = -1; }},
    {"kpool", "gate_scores: inf at [0, 5]",
     [](auto& in) { std::get<ChannelScores>(in.weights).gate_scores.set(5, HUGE_VAL); }},
    {"composite", "pool_matrix: nan",
     [](auto& in) { std::get<RoleMatrix>(in.weights).pool_matrix.set(0, nan); }},
    {"plain", "pool_weights: inf",
     [](auto& in) { std::get<GivenWeights>(in.weights).pool_weights.set(0, HUGE_VAL); }},
    {"csa", "norm_weight is empty", [](auto& in) { in.norm_rope = {}; }},
    {"csa", "eps: -1", [](auto& in) { in.norm_rope.eps = -1; }},
    {"csa", "rope: nan", [](auto& in) { in.norm_rope.rope.set(0, nan); }},
};

TEST(PolicyOperands, AreRefusedByNameAndPlace) {
  for (const Refusal& refusal : refusals) {
    PolicyDraw draw;
    draw.policy = refusal.policy;
    auto in = random_policy_inputs(draw);
    refusal.spoil(in);
    try {
      pool_weights(in);
      ADD_FAILURE() << "accepted: " << refusal.names;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(refusal.names), std::string::npos) << error.what();
    }
  }
}

TEST(PolicyOperands, OfAChannelWithoutAnyScoreAreRefused) {
  auto in = one_group("kpool", 1, {1, 2});
  in.weights = ChannelScores{f32({2, 1}, {-HUGE_VAL, -HUGE_VAL}), f32({2, 1}, {})};
  EXPECT_THROW(pool_weights(in), ConfigError);
}

TEST(PolicyOperands, StoredWeightsHaveTheShapeOfTheirPolicy) {
  const auto in = random_policy_inputs(PolicyDraw{});
  EXPECT_THROW(pool(in, std::vector<float>(3)), ConfigError);
}

TEST(PolicyOperands, BlockMaxHasNoWeights) {
  PoolingInputs in;
  in.policy = "block_max";
  in.weights = NoWeights{};
  EXPECT_THROW(pool_weights(in), ConfigError);
}

TEST(BlockMax, IsTheLargestOfEachBlockAndNanNeverWins) {
  const BlockMaxInputs in{f32({2, 5}, {1, nan, -3, -2, 7, nan, nan, -HUGE_VAL, 0, nan}), 2};
  const Tensor maxima = block_max(in);
  const float infinity = HUGE_VALF;
  const std::vector<float> expected = {1, -2, 7, -infinity, 0, -infinity};
  EXPECT_TRUE(std::ranges::equal(maxima.as<float>(), expected));
}

TEST(BlockMax, RefusesWhatIsNoMatrixOfScores) {
  EXPECT_THROW(block_max({f32({4}, {1, 2, 3, 4}), 2}), ConfigError);
  EXPECT_THROW(block_max({f32({1, 4}, {1, 2, 3, 4}), 0}), ConfigError);
}

}  // namespace
}  // namespace indexpool::reference
