// The kernels that make pool weights, against plain loops in binary64.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy_host.hpp"

namespace indexpool::kernels {
namespace {

PolicyShape any_shape(const std::string& policy) {
  PolicyShape shape;
  shape.policy = policy;
  shape.mode = *rc::gen::element<std::string>("f32", "f16", "bf16");
  shape.index_kpool = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 5, 8, 16);
  shape.head_dim = *rc::gen::element<std::int64_t>(32, 64, 128, 256, 512, 1024, 2048);
  shape.groups = *rc::gen::element<std::int64_t>(0, 1, 2, 3, 9, 31, 33);
  if (shape.head_dim >= 512) shape.groups = std::min<std::int64_t>(shape.groups, 3);
  shape.heads = *rc::gen::element<std::int64_t>(1, 2, 3, 8, 9, 16);
  shape.hidden = *rc::gen::element<std::int64_t>(16, 32, 48, 256, 272, 304);
  shape.absent = *rc::gen::arbitrary<bool>();
  return shape;
}

void expect_weights(const PolicyShape& shape, std::uint64_t seed) {
  const PoolingInputs inputs = policy_inputs(shape, seed);
  RunOptions options;
  options.executor.matrix =
      *rc::gen::element(sim::simt::MatrixModel::sm80, sim::simt::MatrixModel::sm90);
  const PolicyRun run = run_policy(inputs, options);
  const auto accumulation =
      inputs.mode.storage == DType::f32 ? Accumulation::f32_fma : Accumulation::mma_f16_bf16;
  const std::vector<Near> expected = host_weights(inputs, accumulation);
  RC_ASSERT(expected.size() == run.pool_weights.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double found = static_cast<double>(run.pool_weights[i]);
    if (!(std::abs(found - expected[i].value) <= expected[i].error))
      RC_FAIL("weight " + std::to_string(i) + " is " + std::to_string(found) + ", expected " +
              std::to_string(expected[i].value) + " within " + std::to_string(expected[i].error));
  }
  for (const auto order : {sim::simt::LaneOrder::reverse, sim::simt::LaneOrder::random}) {
    options.executor.order = order;
    RC_ASSERT(run_policy(inputs, options) == run);
  }
}

RC_GTEST_PROP(PolicyWeights, RolesAreASoftmax, (std::uint64_t seed)) {
  expect_weights(any_shape("composite"), seed);
}
RC_GTEST_PROP(PolicyWeights, AdditiveTermsAddUp, (std::uint64_t seed)) {
  expect_weights(any_shape(*rc::gen::element<std::string>("additive", "additive_raw")), seed);
}
RC_GTEST_PROP(PolicyWeights, GatesSeeHiddenStateAndVector, (std::uint64_t seed)) {
  expect_weights(any_shape("gated"), seed);
}
RC_GTEST_PROP(PolicyWeights, AccessStatisticsCount, (std::uint64_t seed)) {
  expect_weights(any_shape("tfidf"), seed);
}
RC_GTEST_PROP(PolicyWeights, ChannelsHaveTheirOwnSoftmax, (std::uint64_t seed)) {
  expect_weights(any_shape("kpool"), seed);
}

PolicyShape small(const std::string& policy) {
  PolicyShape shape;
  shape.policy = policy;
  shape.mode = "f32";
  shape.head_dim = 32;
  shape.groups = 1;
  return shape;
}

TEST(PolicyWeights, CosineOfAZeroVectorIsZero) {
  PoolingInputs inputs = policy_inputs(small("additive_raw"), 1);
  auto& terms = std::get<AdditiveTerms>(inputs.weights);
  terms.alpha = terms.gamma = 0;
  terms.beta = 1;
  const std::int64_t zero = inputs.groups[0].first_row + inputs.offsets[1];
  for (std::int64_t c = 0; c < 32; ++c) {
    inputs.vectors.set(zero * 32 + c, 0);
    inputs.vectors.set((inputs.groups[0].first_row + inputs.offsets[2]) * 32 + c,
                       -3 * terms.queries.at(c));
  }
  const PolicyRun run = run_policy(inputs);
  EXPECT_EQ(run.pool_weights[1], 0.0f);
  EXPECT_NEAR(run.pool_weights[2], -1, 1e-6);
  for (std::int64_t c = 0; c < 32; ++c) terms.queries.set(c, 0);
  for (const float weight : run_policy(inputs).pool_weights) EXPECT_EQ(weight, 0.0f);
}

// A distance of sigma, an age of tau: e^-0.5 and e^-1.
TEST(PolicyWeights, PositionAndAgeByHand) {
  PoolingInputs inputs = policy_inputs(small("additive"), 2);
  auto& terms = std::get<AdditiveTerms>(inputs.weights);
  terms.alpha = 1, terms.beta = 0, terms.gamma = 10;
  for (std::int64_t i = 0; i < 4; ++i) {
    terms.distances.set(i, i == 0 ? 0 : static_cast<double>(terms.sigma));
    terms.ages.set(i, i == 3 ? static_cast<double>(terms.tau) : 0);
  }
  const auto weights = run_policy(inputs).pool_weights;
  EXPECT_EQ(weights[0], 11.0f);
  EXPECT_NEAR(weights[1], 10.60653066, 1e-5);
  EXPECT_NEAR(weights[3], 0.60653066 + 3.67879441, 1e-5);
}

TEST(PolicyWeights, GroupsThatNobodyUsedHaveNoFrequency) {
  PoolingInputs inputs = policy_inputs(small("tfidf"), 3);
  auto& terms = std::get<AccessTerms>(inputs.weights);
  terms.mix[0] = 1, terms.mix[1] = terms.mix[2] = 0;
  for (std::int64_t i = 0; i < 4; ++i) terms.accesses.set(i, 0);
  for (const float weight : run_policy(inputs).pool_weights) EXPECT_EQ(weight, 0.0f);
  // All accesses on one vector whose token was seen in every group: tf idf = 1.
  terms.accesses.set(2, 1 << 24);
  terms.groups_accessed.set(2, static_cast<double>(terms.all_groups));
  const auto weights = run_policy(inputs).pool_weights;
  EXPECT_EQ(weights[1], 0.0f);
  EXPECT_EQ(weights[2], 1.0f);
}

TEST(PolicyWeights, GatesSaturateWithoutNaN) {
  PoolingInputs inputs = policy_inputs(small("gated"), 4);
  auto& gate = std::get<GateOperands>(inputs.weights);
  gate.gate_bias.set(0, 1e30);
  for (const float weight : run_policy(inputs).pool_weights) EXPECT_EQ(weight, 1.0f);
  gate.gate_bias.set(0, -1e30);
  const PolicyRun run = run_policy(inputs);
  for (const float weight : run.pool_weights) EXPECT_EQ(weight, 0.0f);
  EXPECT_EQ(run.fallbacks[0], 1);
}

TEST(PolicyWeights, EachRuleRunsItsOwnKernels) {
  const auto kernels = [](const std::string& policy) {
    PolicyShape shape;
    shape.policy = policy;
    shape.head_dim = 32;
    shape.groups = 1;
    return run_policy(policy_inputs(shape, 1)).kernels;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(kernels("plain"), Names({"weighted_pool"}));
  EXPECT_EQ(kernels("composite"), Names({"role_weights", "weighted_pool"}));
  EXPECT_EQ(kernels("additive"), Names({"additive_weights", "weighted_pool"}));
  EXPECT_EQ(kernels("gated"), Names({"hidden_gates", "gated_weights", "weighted_pool"}));
  EXPECT_EQ(kernels("tfidf"), Names({"tfidf_weights", "weighted_pool"}));
  EXPECT_EQ(kernels("csa"), Names({"channel_weights", "weighted_pool"}));
}

}  // namespace
}  // namespace indexpool::kernels
