// Judging by the rules: what a mutant gave beside what the correct kernel gave.
#include "indexpool/verify/mutants/by_rules.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "indexpool/verify/mutants/kill.hpp"

namespace indexpool::verify {
namespace {

Observation of_logits(std::vector<double> found, std::vector<double> expected) {
  return {Op::logits, 1, std::move(found), expected, expected};
}

MutantRun run_of(std::vector<std::vector<Observation>> observed) {
  MutantRun run;
  run.observed = std::move(observed);
  return run;
}

const ByRule& by(const std::vector<ByRule>& results, std::string_view name) {
  const auto rules = accepted_rules();
  const auto at = std::ranges::find_if(rules, [&](const Rule& rule) { return rule.name == name; });
  return results.at(static_cast<std::size_t>(at - rules.begin()));
}

Mutant of_kernel(const char* kernel) {
  Mutant mutant;
  mutant.kernel = kernel;
  return mutant;
}

TEST(ByRules, ARuleNoticesWhatItRefusesAndTheCorrectKernelPasses) {
  const auto correct = run_of({{of_logits({1, 2}, {1, 2})}});
  const auto wrong = run_of({{of_logits({1, 3}, {1, 2})}});
  const auto results = judge_by_rules(of_kernel("logits_mma"), wrong, correct);
  EXPECT_TRUE(by(results, "allclose").noticed);
  EXPECT_TRUE(by(results, "twice_error").noticed);
  EXPECT_FALSE(by(results, "overlap_0.9").applies);
  const auto same = judge_by_rules(of_kernel("logits_mma"), correct, correct);
  for (const ByRule& result : same) EXPECT_FALSE(result.noticed);
}

// A rule that refuses the correct kernel too has said nothing about the mutant.
TEST(ByRules, ARuleThatRefusesTheCorrectKernelNoticesNothing) {
  const auto correct = run_of({{of_logits({1.5}, {1})}});
  const auto wrong = run_of({{of_logits({9}, {1})}});
  const auto results = judge_by_rules(of_kernel("logits_mma"), wrong, correct);
  EXPECT_FALSE(by(results, "allclose").noticed);
  EXPECT_EQ(by(results, "allclose").false_alarms, 1);
  EXPECT_TRUE(by(results, "twice_error").noticed);  // it knows the correct kernel's error
}

TEST(ByRules, WhatTheExecutorRefusedIsNoticedByEveryone) {
  const auto correct = run_of({{of_logits({1}, {1})}});
  for (const ByRule& result : judge_by_rules(of_kernel("logits_mma"), run_of({{}}), correct))
    EXPECT_EQ(result.noticed, result.applies);
}

TEST(ByRules, SelectionsAreJudgedByOverlapAlone) {
  const Observation right{Op::topk, 2, {1, 2}, {1, 2}, {}};
  const Observation half{Op::topk, 2, {1, 5}, {1, 2}, {}};
  const auto results = judge_by_rules(of_kernel("topk"), run_of({{half}}), run_of({{right}}));
  EXPECT_TRUE(by(results, "overlap_0.9").noticed);
  EXPECT_FALSE(by(results, "calc_diff").applies);
}

// What the observer is given by real runs of the real kernels.
TEST(ByRules, EveryOperationIsObserved) {
  Mutant of_drafts;
  of_drafts.problems = "drafts";
  const MutantRun run = run_unmutated(MutantSetting(of_drafts), {true, true});
  ASSERT_FALSE(run.killed()) << run.reason;
  ASSERT_EQ(run.observed.size(), mutant_problems("drafts").problems.size());
  for (const auto& problem : run.observed) {
    std::vector<Op> ops;
    for (const Observation& seen : problem) {
      ops.push_back(seen.op);
      EXPECT_EQ(seen.found.size(), seen.expected.size());
      EXPECT_EQ(seen.found.size() % static_cast<std::size_t>(seen.width), 0u);
    }
    EXPECT_EQ(ops, (std::vector<Op>{Op::pool, Op::append, Op::quantize_query, Op::logits, Op::topk,
                                    Op::topk}));
  }
}

}  // namespace
}  // namespace indexpool::verify
