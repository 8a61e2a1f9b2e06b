// Layers of attention through reference and kernels.
#include "indexpool/verify/attention/attention.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/kernels/attention_args.hpp"
#include "indexpool/model/attention_layer.hpp"

namespace indexpool::verify::attention {
namespace {

static_assert(most_attention_selection == kernels::most_selected);

Problem problem_of(std::string_view layer, const std::string& mode) {
  Problem problem;
  problem.attention = layer;
  problem.mode = mode;
  problem.indexer.index_head_dim = 32;
  problem.indexer.index_n_heads = 2;
  problem.indexer.index_topk = 8;
  problem.lengths = {35, 0, 18};
  return problem;
}

const Check& check_of(const Record& record, std::string_view name) {
  const auto& checks = record.verdict.checks;
  const auto found = std::ranges::find(checks, name, &Check::name);
  EXPECT_NE(found, checks.end()) << record.op << " has no check " << name;
  return *found;
}

TEST(Attention, EachLayerPassesInEveryModeAndEveryCheckLooksAtSomething) {
  for (const AttentionLayer& layer : attention_layers()) {
    for (const std::string& mode : attention_mode_names()) {
      for (const Record& record : verify_problem(problem_of(layer.name, mode), {})) {
        EXPECT_EQ(record.verdict.status, Status::passed)
            << record.case_name << ", " << record.op << ": " << record.verdict.reason;
        EXPECT_EQ(record.declared, record.counted) << record.case_name;
        for (const Check& check : record.verdict.checks) {
          if (check.name == "guards" || check.name == "traffic") continue;
          EXPECT_GT(check.compared, 0)
              << record.case_name << ", " << record.op << ": " << check.name;
        }
      }
    }
  }
}

TEST(Attention, EachOperationHasItsLaws) {
  const auto names = [](const Record& record) {
    std::set<std::string> set;
    for (const Check& check : record.verdict.checks) set.insert(check.name);
    return set;
  };
  const auto expect = [&](const Record& record, const char* op, std::set<std::string> laws) {
    EXPECT_EQ(record.op, op);
    for (const char* every : {"rerun", "lane_order", "guards", "traffic"}) laws.insert(every);
    EXPECT_EQ(names(record), laws) << op;
  };
  const auto hybrid = verify_problem(problem_of("hybrid", "bf16"), {});
  ASSERT_EQ(hybrid.size(), 5U);
  expect(hybrid[0], "safe_gate", {"bound", "range"});
  expect(hybrid[1], "linear_attention", {"bound", "state", "resume"});
  expect(hybrid[2], "linear_attention", {"bound", "state", "resume", "agreement"});
  expect(hybrid[3], "sparse_attention", {"bound", "convexity", "softmax_sum", "selected_only"});
  expect(hybrid[4], "gate_fusion", {"bound", "mixing", "saturation"});
  const auto composite = verify_problem(problem_of("composite", "bf16"), {});
  ASSERT_EQ(composite.size(), 1U);
  expect(composite[0], "composite_attention", {"bound", "convexity", "softmax_sum", "causal"});
  const auto feedback = verify_problem(problem_of("feedback", "bf16"), {});
  ASSERT_EQ(feedback.size(), 2U);
  expect(feedback[0], "attention_feedback", {"counts", "even_attention"});
  expect(feedback[1], "pool_weights", {"bound", "weight_range", "response"});
}

// What has nothing to show must not look like a pass.
TEST(Attention, VacuousProblemsAreUntrusted) {
  const auto untrusted = [](const Problem& problem, std::size_t record, const char* check) {
    const auto records = verify_problem(problem, {});
    EXPECT_EQ(records.at(record).verdict.status, Status::untrusted) << records[record].case_name;
    EXPECT_EQ(check_of(records[record], check).status, Status::untrusted)
        << records[record].case_name;
  };
  Problem one = problem_of("hybrid", "f32");
  one.lengths = {1};  // one token is its own average
  untrusted(one, 3, "convexity");
  untrusted(one, 3, "softmax_sum");
  Problem nothing = problem_of("hybrid", "f32");
  nothing.lengths = {3};  // no whole pool, and no forced tail
  nothing.indexer.index_kpool_always_select_tail = false;
  untrusted(nothing, 3, "bound");
  Problem composite = problem_of("composite", "f32");
  composite.lengths = {1, 1};
  untrusted(composite, 0, "convexity");
  Problem alone = problem_of("feedback", "f32");
  alone.lengths = {1};  // one vector never gets more than the mean
  alone.indexer.index_n_heads = alone.indexer.index_kpool = alone.indexer.index_topk = 1;
  untrusted(alone, 0, "counts");
  untrusted(alone, 1, "response");
  Problem overflow = problem_of("composite", "f32");
  overflow.fill = "near_overflow";
  overflow.lengths = {1};
  overflow.indexer.index_n_heads = 1;
  untrusted(overflow, 0, "bound");
}

TEST(Attention, TheSameSeedGivesTheSameOperandsAndAnotherOthers) {
  const auto bytes = [](std::uint64_t seed) {
    Problem problem = problem_of("hybrid", "bf16");
    problem.seed = seed;
    const HybridInputs in = make_hybrid(problem);
    std::vector<std::byte> all;
    for (const Tensor* tensor : {&in.gate.features, &in.gate.a_log, &in.linear.rows.queries,
                                 &in.linear.rows.values, &in.linear.states, &in.sparse.keys,
                                 &in.sparse.values, &in.sparse.selection, &in.fusion.gate_logits})
      all.insert(all.end(), tensor->raw().begin(), tensor->raw().end());
    return all;
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

RC_GTEST_PROP(Attention, SelectionsAreWholeVisiblePoolsAndTheTailOrNothing, (std::uint64_t seed)) {
  Problem problem = problem_of("hybrid", "f32");
  problem.seed = seed;
  problem.indexer.index_kpool = *rc::gen::inRange<std::int64_t>(1, 9);
  problem.indexer.index_topk = problem.indexer.index_kpool * *rc::gen::inRange<std::int64_t>(1, 5);
  const std::int64_t kpool = problem.indexer.index_kpool;
  const Tensor selection = make_hybrid(problem).sparse.selection;
  std::int64_t row = 0;
  for (std::int64_t s = 0, first = 0; s < 3; first += problem.lengths[std::size_t(s++)]) {
    for (std::int64_t p = 0; p < problem.lengths[static_cast<std::size_t>(s)]; ++p, ++row) {
      std::set<std::int64_t> tokens;
      for (std::int64_t w = 0; w < selection.dim(1); ++w) {
        const auto token = static_cast<std::int64_t>(selection.at(row * selection.dim(1) + w));
        if (token >= 0) RC_ASSERT(tokens.insert(token - first).second);
      }
      if (p % 16 == 1) {
        RC_ASSERT(tokens.empty());
        continue;
      }
      const std::int64_t pools = (p + 1) / kpool;
      for (std::int64_t t = pools * kpool; t <= p; ++t) RC_ASSERT(tokens.erase(t) == 1U);
      RC_ASSERT(static_cast<std::int64_t>(tokens.size()) ==
                std::min(pools * kpool, problem.indexer.index_topk));
      for (const std::int64_t token : tokens) {
        RC_ASSERT(token >= 0 && token < pools * kpool);
        for (std::int64_t t = token / kpool * kpool; t < (token / kpool + 1) * kpool; ++t)
          RC_ASSERT(tokens.contains(t));
      }
    }
  }
}

TEST(Attention, AWrongOperationLeavesTheOnesBehindItJudgedFromTheReference) {
  // Decays that are all wrong: linear attention goes on from right ones.
  const kernels::Kernel wrong{
      "wrong",
      "wrong",
      [](const kernels::OpArgs& args) -> std::optional<std::string> {
        const auto* any = std::get_if<kernels::AttentionArgs>(&args);
        if (any != nullptr && std::holds_alternative<kernels::SafeGateArgs>(*any)) return {};
        return "it is no safe gate";
      },
      [](const kernels::OpArgs& args, kernels::LaunchContext& context) {
        kernels::find_kernel("simt", args).launch(args, context);
        std::get<kernels::SafeGateArgs>(std::get<kernels::AttentionArgs>(args)).log_decay[3] = -400;
      },
      [](const kernels::OpArgs& args) { return kernels::find_kernel("simt", args).work(args); },
      nullptr};
  Options options;
  options.target = "wrong";
  options.extra_kernels = {&wrong, 1};
  const auto records = verify_problem(problem_of("hybrid", "bf16"), options);
  EXPECT_EQ(records[0].verdict.status, Status::failed);
  EXPECT_EQ(check_of(records[0], "range").status, Status::failed);
  for (std::size_t i = 1; i < records.size(); ++i)
    EXPECT_EQ(records[i].verdict.status, Status::passed) << records[i].verdict.reason;
}

}  // namespace
}  // namespace indexpool::verify::attention
