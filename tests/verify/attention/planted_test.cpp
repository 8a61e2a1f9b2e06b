// The tester is tested: one wrong thing in what a kernel of a layer wrote must fail the check that
// is named for it.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

using kernels::AttentionArgs;
using kernels::OpArgs;

// What is done around the correct launch; whether these are the arguments that it is done to.
std::function<bool(const OpArgs&)> is_mine;
std::function<OpArgs(const OpArgs&)> change;  // the arguments, before
std::function<void(const OpArgs&)> spoil;     // the outputs, after

std::optional<std::string> takes(const OpArgs& args) {
  return is_mine(args) ? std::nullopt : std::optional<std::string>("it is not what is spoilt");
}
void launch_spoilt(const OpArgs& args, kernels::LaunchContext& context) {
  const OpArgs changed = change ? change(args) : args;
  kernels::find_kernel("simt", changed).launch(changed, context);
  if (spoil) spoil(args);
}
Work work_of(const OpArgs& args) { return kernels::find_kernel("simt", args).work(args); }

template <class Args>
const Args* as(const OpArgs& any) {
  const auto* attention = std::get_if<AttentionArgs>(&any);
  return attention == nullptr ? nullptr : std::get_if<Args>(attention);
}

Problem small(const char* layer) {
  Problem problem;
  problem.attention = layer;
  problem.mode = "f32";
  problem.indexer.index_head_dim = 32;
  problem.indexer.index_n_heads = 2;
  problem.indexer.index_topk = 8;
  problem.lengths = {35, 0, 18};
  return problem;
}

// `by` must fail in the record of the kernel that takes Args.
template <class Args>
void expect_caught(const char* layer, const char* by, const std::function<void(Args&)>& before,
                   const std::function<void(const Args&)>& after) {
  is_mine = [](const OpArgs& args) { return as<Args>(args) != nullptr; };
  change = [&](const OpArgs& args) -> OpArgs {
    Args mine = *as<Args>(args);
    if (before) before(mine);
    return AttentionArgs(mine);
  };
  spoil = [&](const OpArgs& args) {
    if (after) after(*as<Args>(args));
  };
  const kernels::Kernel spoilt{"spoilt", "spoilt", takes, launch_spoilt, work_of, nullptr};
  Options options;
  options.target = "spoilt";
  options.extra_kernels = {&spoilt, 1};
  bool seen = false;
  for (const Record& record : verify_problem(small(layer), options)) {
    if (record.implementation != "spoilt") continue;
    seen = true;
    const auto& checks = record.verdict.checks;
    const auto found = std::ranges::find(checks, std::string_view(by), &Check::name);
    ASSERT_NE(found, checks.end()) << record.op << " has no check " << by;
    EXPECT_EQ(found->status, Status::failed) << record.op << ": " << by << " did not see it";
    EXPECT_EQ(record.verdict.status, Status::failed) << record.op;
  }
  EXPECT_TRUE(seen);
}
template <class Args>
void before_launch(const char* layer, const char* by, const std::function<void(Args&)>& f) {
  expect_caught<Args>(layer, by, f, {});
}
template <class Args>
void after_launch(const char* layer, const char* by, const std::function<void(const Args&)>& f) {
  expect_caught<Args>(layer, by, {}, f);
}

using kernels::AttentionFeedbackArgs;
using kernels::CompositeAttentionArgs;
using kernels::GateFusionArgs;
using kernels::LinearChunkArgs;
using kernels::LinearStepArgs;
using kernels::SafeGateArgs;
using kernels::SparseAttentionArgs;

TEST(PlantedAttention, ADecayAFewRoundingsOffIsSeen) {
  after_launch<SafeGateArgs>("hybrid", "bound",
                             [](const SafeGateArgs& a) { a.log_decay[7] *= 1 + 0x1p-14f; });
}
TEST(PlantedAttention, ADecayThatGrowsIsSeen) {
  after_launch<SafeGateArgs>("hybrid", "range",
                             [](const SafeGateArgs& a) { a.log_decay[7] = 0.01f; });
}
TEST(PlantedAttention, AForgottenScaleIsSeen) {
  before_launch<LinearStepArgs>("hybrid", "bound", [](LinearStepArgs& a) { a.linear.scale = 1; });
  before_launch<LinearChunkArgs>("hybrid", "bound", [](LinearChunkArgs& a) { a.linear.scale = 1; });
  before_launch<SparseAttentionArgs>("hybrid", "bound",
                                     [](SparseAttentionArgs& a) { a.scale = 1; });
  before_launch<CompositeAttentionArgs>("composite", "bound",
                                        [](CompositeAttentionArgs& a) { a.scale = 1; });
}
TEST(PlantedAttention, FormsThatPartAreSeen) {
  after_launch<LinearChunkArgs>("hybrid", "agreement",
                                [](const LinearChunkArgs& a) { a.linear.outputs[40] += 0.5f; });
}
TEST(PlantedAttention, AStateThatIsNotLeftIsSeen) {
  after_launch<LinearStepArgs>("hybrid", "state",
                               [](const LinearStepArgs& a) { a.linear.states[5] += 0.1f; });
  after_launch<LinearStepArgs>("hybrid", "resume",
                               [](const LinearStepArgs& a) { a.linear.states[5] += 0.1f; });
}
TEST(PlantedAttention, AnUnselectedTokenIsSeen) {
  after_launch<SparseAttentionArgs>("hybrid", "selected_only", [](const SparseAttentionArgs& a) {
    float all = 0;
    for (std::int64_t i = 0; i < a.tokens * a.key_heads * a.value_dim; ++i)
      all += static_cast<const float*>(a.values)[i];
    for (std::int64_t n = 0; n < a.rows; ++n)
      a.outputs[n * a.heads * a.value_dim] += 0x1p-20f * all;
  });
}
TEST(PlantedAttention, ValuesOutsideThoseAttendedToAreSeen) {
  after_launch<SparseAttentionArgs>("hybrid", "convexity",
                                    [](const SparseAttentionArgs& a) { a.outputs[70] += 100; });
  after_launch<CompositeAttentionArgs>("composite", "convexity",
                                       [](const auto& a) { a.outputs[70] += 100; });
}
TEST(PlantedAttention, WeightsThatDoNotSumToOneAreSeen) {
  const auto shrink = [](const auto& a) {
    for (int i = 0; i < 64; ++i) a.outputs[i] *= 0.999f;
  };
  after_launch<SparseAttentionArgs>("hybrid", "softmax_sum", shrink);
  after_launch<CompositeAttentionArgs>("composite", "softmax_sum", shrink);
}
TEST(PlantedAttention, AGateThatNeverClosesIsSeen) {
  after_launch<GateFusionArgs>("hybrid", "saturation", [](const GateFusionArgs& a) {
    for (std::int64_t i = 0; i < a.rows * a.heads * a.value_dim; ++i) {
      const float gate = 1 / (1 + std::exp(-std::clamp(a.gate_logits[i / a.value_dim], -9.f, 9.f)));
      a.outputs[i] = gate * a.a[i] + (1 - gate) * a.b[i];
    }
  });
}
TEST(PlantedAttention, ExchangedBranchesAreSeen) {
  before_launch<GateFusionArgs>("hybrid", "bound", [](GateFusionArgs& a) { std::swap(a.a, a.b); });
  before_launch<GateFusionArgs>("hybrid", "saturation",
                                [](GateFusionArgs& a) { std::swap(a.a, a.b); });
}
TEST(PlantedAttention, ALookAtTheNextTokenIsSeen) {
  after_launch<CompositeAttentionArgs>("composite", "causal", [](const auto& a) {
    const std::int64_t last = (a.tokens - 1) * a.heads * a.head_dim;
    a.outputs[0] += static_cast<const float*>(a.values)[last] * 0x1p-10f;
  });
}
TEST(PlantedAttention, AMissedAndADoubledAccessAreSeen) {
  after_launch<AttentionFeedbackArgs>("feedback", "counts",
                                      [](const auto& a) { ++a.next_accesses[3]; });
  after_launch<AttentionFeedbackArgs>("feedback", "counts",
                                      [](const auto& a) { --a.groups_accessed[2]; });
}

}  // namespace
}  // namespace indexpool::verify
