// Published forms of pooling through reference and kernels.
#include "indexpool/verify/policy/policy.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "indexpool/model/policy.hpp"

namespace indexpool::verify::policy {
namespace {

Problem problem_of(const PolicyInfo& policy, const std::string& mode) {
  Problem problem;
  problem.policy = policy.name;
  problem.mode = mode;
  problem.indexer.index_kpool = policy.index_kpool;
  problem.indexer.index_head_dim = std::min<std::int64_t>(policy.head_dim, 128);
  problem.indexer.index_n_heads = std::min<std::int64_t>(policy.heads, 3);
  problem.lengths = {21, 0, 10};
  return problem;
}

const Check& check_of(const Record& record, std::string_view name) {
  const auto& checks = record.verdict.checks;
  const auto found = std::ranges::find(checks, name, &Check::name);
  EXPECT_NE(found, checks.end()) << record.case_name << " has no check " << name;
  return *found;
}

// Of the pooled vectors.
Record pool_record(const std::vector<Record>& records) {
  const auto found = std::ranges::find(records, to_string(Op::pool), &Record::op);
  EXPECT_NE(found, records.end());
  return *found;
}

TEST(Policies, EachPassesInEveryMode) {
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == shipped_policy) continue;
    for (const NumericMode& mode : pooling_modes()) {
      if (policy.grouping == Grouping::scores && mode.name != "f32") continue;
      for (const Record& record : verify_policy(problem_of(policy, mode.name), {})) {
        EXPECT_EQ(record.verdict.status, Status::passed)
            << record.case_name << ", " << record.op << ": " << record.verdict.reason;
        EXPECT_EQ(record.declared, record.counted) << record.case_name;
      }
    }
  }
}

TEST(Policies, PropertiesHoldOrTheReportSaysWhyNot) {
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == shipped_policy || policy.grouping == Grouping::scores) continue;
    const auto records = verify_policy(problem_of(policy, "bf16"), {});
    const Record pool = pool_record(records);
    for (const auto& [name, promised] : {std::pair{"convexity", policy.convex},
                                         {"scaling", policy.scales},
                                         {"permutation", true}}) {
      const Check& check = check_of(pool, name);
      EXPECT_EQ(check.status, promised ? Status::passed : Status::skipped)
          << pool.case_name << ": " << check.reason;
      if (!promised) {
        EXPECT_EQ(check.reason, policy.exception);
      }
      if (promised) {
        EXPECT_GT(check.compared, 0) << pool.case_name;
      }
    }
  }
}

TEST(Policies, MonitoringShowsEntropyAndWhatIsNotNormalised) {
  const auto values = [](std::string_view policy) {
    return pool_record(verify_policy(problem_of(find_policy(policy), "f32"), {})).values;
  };
  EXPECT_DOUBLE_EQ(values("mean").at("weight_entropy_bits"), 2);  // four equal weights
  EXPECT_EQ(values("last").at("weight_entropy_bits"), 0);
  EXPECT_EQ(values("plain").at("weight_sum_deviation"), 0);
  EXPECT_GT(values("plain_raw").at("weight_sum_deviation"), 0.1);
  EXPECT_GT(values("plain_raw").at("negative_weights"), 0);
  EXPECT_GT(values("additive_raw").at("negative_weights"), 0);
  EXPECT_EQ(values("additive").at("negative_weights"), 0);
  // 0.4, 0.3, 0.2, 0.1: -sum p log2 p.
  EXPECT_NEAR(values("composite_fixed").at("weight_entropy_bits"), 1.8464393, 1e-6);
}

TEST(Policies, TheSameSeedGivesTheSameOperandsAndAnotherOthers) {
  const Problem problem = problem_of(find_policy("gated"), "bf16");
  Problem other = problem;
  other.seed = 2;
  const auto bytes = [](const Problem& of) {
    const PoolingInputs inputs = make_inputs(of);
    const auto& gates = std::get<GateOperands>(inputs.weights);
    std::vector<std::byte> all(inputs.vectors.raw().begin(), inputs.vectors.raw().end());
    all.insert(all.end(), gates.hidden_states.raw().begin(), gates.hidden_states.raw().end());
    all.insert(all.end(), gates.gate_weight.raw().begin(), gates.gate_weight.raw().end());
    return all;
  };
  EXPECT_EQ(bytes(problem), bytes(problem));
  EXPECT_NE(bytes(problem), bytes(other));
}

TEST(Policies, FixedStageWeightsAreThePublishedOnes) {
  const PoolingInputs inputs = make_inputs(problem_of(find_policy("composite_fixed"), "f32"));
  const Tensor& weights = std::get<GivenWeights>(inputs.weights).pool_weights;
  const float published[] = {0.4f, 0.3f, 0.2f, 0.1f};
  for (std::int64_t i = 0; i < weights.size(); ++i)
    EXPECT_EQ(static_cast<float>(weights.at(i)), published[i % 4]);
}

TEST(Policies, TurningGroupsRoundTwiceGivesThemBack) {
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == shipped_policy || policy.grouping == Grouping::scores ||
        policy.grouping == Grouping::windows)
      continue;
    const PoolingInputs inputs = make_inputs(problem_of(policy, "f32"));
    const PoolingInputs twice = reversed(reversed(inputs).inputs).inputs;
    EXPECT_EQ(twice.groups, inputs.groups) << policy.name;
    EXPECT_EQ(twice.offsets, inputs.offsets) << policy.name;
  }
}

}  // namespace
}  // namespace indexpool::verify::policy
