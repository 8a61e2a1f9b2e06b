// The forward pass of training beside the reference's own, written apart from it.
#include <algorithm>

#include <gtest/gtest.h>

#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/training/gradients.hpp"

#include "policy_inputs.hpp"

namespace indexpool::reference::training {
namespace {

// The reference's values of weights and sums are rounded to binary32, `exact` is not: an ulp.
constexpr double f32_rounding = 0x1p-23;

// Largest difference, relative to the largest expected magnitude.
double difference(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

TEST(TrainingForward, ComputesWhatTheReferenceComputesForEveryPolicy) {
  for (const std::string& policy : policy_names()) {
    if (policy == "block_max") continue;
    for (const std::int64_t kpool : {2, 4, 8}) {
      PolicyDraw draw;
      draw.policy = policy;
      draw.kpool = kpool;
      draw.seed = static_cast<std::uint64_t>(kpool);
      const PoolingInputs inputs = random_policy_inputs(draw);
      const Operands operands = operands_of(inputs);
      const auto weights = forward_weights(operands.pooling, operands.arrays);
      const Bounded expected = reference::pool_weights(inputs);
      // Absent vectors' weights may be anything: compared where they exist.
      std::vector<double> found = weights, wanted = expected.value;
      for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i] == 0) wanted[i] = 0;
      EXPECT_LT(difference(found, wanted), f32_rounding) << policy << " of " << kpool;

      const std::vector<float> stored(weights.begin(), weights.end());
      const PolicyPooled pooled = reference::pool(inputs, stored);
      EXPECT_LT(
          difference(forward_pool(operands.pooling, operands.arrays, weights), pooled.exact.value),
          1e-12)
          << policy;
      EXPECT_LT(difference(forward_pool(operands.pooling, operands.arrays,
                                        std::vector<double>(stored.begin(), stored.end())),
                           pooled.before.value),
                f32_rounding)
          << policy;
    }
  }
}

TEST(TrainingForward, PoolsTheMeanWhereTheReferenceDoes) {
  PolicyDraw draw;
  draw.policy = "gated";
  draw.absent = false;
  PoolingInputs inputs = random_policy_inputs(draw);
  auto& gate = std::get<GateOperands>(inputs.weights);
  gate.gate_bias.set(0, -1000);  // sigmoid underflows for every second group
  const Operands operands = operands_of(inputs);
  const auto weights = forward_weights(operands.pooling, operands.arrays);
  const std::vector<float> stored(weights.begin(), weights.end());
  const PolicyPooled pooled = reference::pool(inputs, stored);
  ASSERT_EQ(std::count(pooled.fallback.begin(), pooled.fallback.end(), 1), 3);
  EXPECT_LT(
      difference(forward_pool(operands.pooling, operands.arrays, weights), pooled.before.value),
      1e-6);
}

TEST(TrainingForward, BlockMaxHasNothingToTrain) {
  EXPECT_THROW(array_names(find_policy("block_max")), std::exception);
}

}  // namespace
}  // namespace indexpool::reference::training
