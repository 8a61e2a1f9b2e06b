// weighted_pool against plain loops in binary64, in every numeric mode.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy_host.hpp"

namespace indexpool::kernels {
namespace {

std::vector<std::string> mode_list() {
  std::vector<std::string> names;
  for (const NumericMode& mode : pooling_modes()) names.push_back(mode.name);
  return names;
}

RC_GTEST_PROP(WeightedPool, IsWhatThePlainLoopsAllow, (std::uint64_t seed)) {
  PolicyShape shape;
  shape.policy = *rc::gen::element<std::string>("plain", "additive", "gated", "kpool", "mean");
  shape.mode = *rc::gen::elementOf(mode_list());
  shape.index_kpool = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 8, 16);
  shape.head_dim = *rc::gen::element<std::int64_t>(32, 64, 128, 256, 512, 1024, 2048);
  shape.groups = *rc::gen::element<std::int64_t>(0, 1, 2, 3, 9, 31, 33);
  if (shape.head_dim >= 512) shape.groups = std::min<std::int64_t>(shape.groups, 3);
  shape.absent = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>())
    shape.norm_rope_dims =
        *rc::gen::element<std::int64_t>(0, 8, 16, shape.head_dim / 2 / 8 * 8, shape.head_dim);
  const PoolingInputs inputs = policy_inputs(shape, seed);
  RunOptions options;
  options.checksums = *rc::gen::arbitrary<bool>();
  const PolicyRun run = run_policy(inputs, options);
  for (std::int64_t g = 0; g < inputs.group_count(); ++g) {
    const std::string wrong = difference(inputs, run, g);
    if (!wrong.empty()) RC_FAIL(wrong);
  }
  for (const auto order : {sim::simt::LaneOrder::reverse, sim::simt::LaneOrder::random}) {
    options.executor.order = order;
    RC_ASSERT(run_policy(inputs, options) == run);
  }
}

PoolingInputs one_group(const std::string& policy, const std::string& mode, std::int64_t head_dim) {
  PolicyShape shape;
  shape.policy = policy;
  shape.mode = mode;
  shape.head_dim = head_dim;
  shape.groups = 1;
  PoolingInputs inputs = policy_inputs(shape, 7);
  inputs.groups[0].weight_set = 0;
  return inputs;
}

std::vector<double> pooled_values(const PoolingInputs& inputs, const PolicyRun& run) {
  std::vector<double> values;
  for (std::int64_t c = 0; c < inputs.head_dim; ++c)
    values.push_back(load_element(inputs.mode.cache, run.pooled.data(), c));
  return values;
}

TEST(WeightedPool, TheFirstTrainingStageByHand) {
  PoolingInputs inputs = one_group("composite_fixed", "f32", 64);
  inputs.offsets = {0, 1, 2, 3};
  inputs.groups[0].first_row = 0;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t c = 0; c < 64; ++c) inputs.vectors.set(i * 64 + c, i == 0 ? c : 10 * i);
  RunOptions options;
  options.pool_weights.assign(static_cast<std::size_t>(pool_weight_count(inputs)), 0);
  const float fixed[] = {0.5f, 0.25f, 0.125f, 0.125f};
  std::copy(std::begin(fixed), std::end(fixed), options.pool_weights.begin());
  const auto pooled = pooled_values(inputs, run_policy(inputs, options));
  for (std::int64_t c = 0; c < 64; ++c)
    EXPECT_EQ(pooled[static_cast<std::size_t>(c)], 0.5 * static_cast<double>(c) + 2.5 + 2.5 + 3.75);
}

TEST(WeightedPool, AVanishingSumOfWeightsGivesTheMean) {
  PoolingInputs inputs = one_group("additive_raw", "f32", 256);
  inputs.groups[0].absent = 1;
  RunOptions options;
  const auto run_with = [&](std::vector<float> weights) {
    options.pool_weights = std::move(weights);
    return run_policy(inputs, options);
  };
  for (const auto& weights : std::vector<std::vector<float>>{
           {9, 0, 0, 0}, {9, 1, -1, 0}, {9, 0x1p-127f, 0, 0}, {9, -0x1p-127f, 0, 0}}) {
    const PolicyRun run = run_with(weights);
    EXPECT_EQ(run.fallbacks[0], 1);
    const auto pooled = pooled_values(inputs, run);
    for (std::int64_t c = 0; c < 256; ++c) {
      double mean = 0;
      for (std::size_t i = 1; i < 4; ++i)
        mean += inputs.vectors.at((inputs.groups[0].first_row + inputs.offsets[i]) * 256 + c) / 3;
      EXPECT_NEAR(pooled[static_cast<std::size_t>(c)], mean, 1e-6 * (1 + 30 * std::abs(mean)));
    }
  }
  // The smallest normal number is a sum like any other, on either side of zero.
  for (const float smallest : {0x1p-126f, -0x1p-126f}) {
    const PolicyRun run = run_with({0, 0, smallest, 0});
    EXPECT_EQ(run.fallbacks[0], 0);
    const std::int64_t row = inputs.groups[0].first_row + inputs.offsets[2];
    EXPECT_NEAR(pooled_values(inputs, run)[0], inputs.vectors.at(row * 256), 1e-5);
  }
}

TEST(WeightedPool, ZeroVectorsHaveTheFloorScaleAndNoSums) {
  for (const std::string mode : {"fp8", "fp8_amax", "int8"}) {
    PoolingInputs inputs = one_group("plain", mode, 512);
    for (std::int64_t i = 0; i < inputs.vectors.size(); ++i) inputs.vectors.set(i, 0);
    const PolicyRun run = run_policy(inputs);
    const float largest = mode == "int8" ? 127 : 448;
    EXPECT_EQ(run.scales[0], mode == "fp8" ? 0x1p-22f : 1e-4f / largest) << mode;
    for (const std::byte code : run.pooled) EXPECT_EQ(code, std::byte{0}) << mode;
    EXPECT_EQ(run.checksums[0].sum, 0.0f);
    EXPECT_EQ(run.checksums[0].exact_weighted_sum, 0u);
  }
}

TEST(WeightedPool, WhatIsAbsentIsNeverRead) {
  PoolingInputs inputs = one_group("csa", "bf16", 128);
  inputs.groups[0].absent = 3;
  inputs.groups[0].first_row = 0;
  inputs.offsets = {1 << 30, -(1 << 30), std::int64_t{1} << 40,
                    1};  // the executor would stop these
  const PolicyRun run = run_policy(inputs);
  EXPECT_EQ(difference(inputs, run, 0), "");
  for (std::int64_t c = 0; c < 128; ++c)  // those of the fourth vector
    EXPECT_EQ(run.pool_weights[static_cast<std::size_t>(384 + c)], 1.0f);
}

TEST(WeightedPool, ReadersOfTheComparisonNoticeAWrongRun) {
  const PoolingInputs inputs = one_group("plain", "int8", 64);
  const PolicyRun right = run_policy(inputs);
  ASSERT_EQ(difference(inputs, right, 0), "");
  PolicyRun wrong = right;
  wrong.pooled[5] = static_cast<std::byte>(static_cast<int>(wrong.pooled[5]) + 1);
  EXPECT_NE(difference(inputs, wrong, 0), "");
  wrong = right;
  wrong.scales[0] = std::nextafter(wrong.scales[0] * 1.001f, 1.0f);
  EXPECT_NE(difference(inputs, wrong, 0), "");
  wrong = right;
  ++wrong.checksums[0].exact_weighted_sum;
  EXPECT_NE(difference(inputs, wrong, 0), "");
  wrong = right;
  wrong.fallbacks[0] = 1;
  EXPECT_NE(difference(inputs, wrong, 0), "");
}

}  // namespace
}  // namespace indexpool::kernels
