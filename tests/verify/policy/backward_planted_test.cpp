// The tester is tested: mistakes that a backward kernel may make must fail the check that is named
// for them.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::policy {
namespace {

using kernels::BackwardArgs;
using kernels::OpArgs;

// What is done to the arguments before the correct launch, and to its output after; each says
// whether the launch is one that it spoils.
struct Spoil {
  std::function<bool(BackwardArgs&)> before = [](BackwardArgs&) { return false; };
  std::function<bool(const BackwardArgs&)> after = [](const BackwardArgs&) { return false; };
};
Spoil spoil;
int spoilt = 0;

std::optional<std::string> takes(const OpArgs& args) {
  return std::holds_alternative<BackwardArgs>(args)
             ? std::nullopt
             : std::optional<std::string>("it is no backward pass");
}
void launch_spoilt(const OpArgs& args, kernels::LaunchContext& context) {
  BackwardArgs mine = std::get<BackwardArgs>(args);
  spoilt += spoil.before(mine);
  kernels::find_kernel("simt", OpArgs(mine)).launch(OpArgs(mine), context);
  spoilt += spoil.after(mine);
}
Work work_of(const OpArgs& args) { return kernels::find_kernel("simt", args).work(args); }

void expect_caught(const char* policy, const char* by, Spoil how) {
  const kernels::Kernel kernel{"spoilt", "spoilt", takes, launch_spoilt, work_of, nullptr};
  Options options;
  options.target = "spoilt";
  options.extra_kernels = {&kernel, 1};
  Problem problem;
  problem.policy = policy;
  problem.mode = "bf16";
  problem.indexer.index_kpool = find_policy(policy).index_kpool;
  problem.indexer.index_head_dim = 64;
  problem.indexer.index_n_heads = 2;
  problem.lengths = {41};
  spoil = std::move(how);
  spoilt = 0;
  const auto records = verify_policy(problem, options);
  spoil = {};
  EXPECT_GT(spoilt, 0) << policy << ": nothing was spoilt";
  const auto record = std::ranges::find(records, to_string(Op::pool_backward), &Record::op);
  ASSERT_NE(record, records.end());
  EXPECT_EQ(record->verdict.status, Status::failed) << policy;
  const auto& checks = record->verdict.checks;
  const auto found = std::ranges::find(checks, std::string_view(by), &Check::name);
  ASSERT_NE(found, checks.end()) << policy << " has no check " << by;
  EXPECT_EQ(found->status, Status::failed) << policy << ": " << by << " did not see it";
}
// `f(args)` on launches of one kind, after them.
template <class Args, class F>
Spoil after(F f) {
  Spoil made;
  made.after = [f](const BackwardArgs& any) {
    const auto* args = std::get_if<Args>(&any);
    if (args != nullptr) f(*args);
    return args != nullptr;
  };
  return made;
}

TEST(PlantedBackward, AForgottenDivisionIsSeen) {
  const auto sum = [](const kernels::PoolBackwardArgs& args) {
    float total = 0;
    for (int i = 0; i < args.grouped.index_kpool; ++i) total += args.pool_weights[i];
    return total;
  };
  expect_caught("additive", "bound_held_vectors",
                after<kernels::PoolBackwardArgs>([&](const auto& args) {
                  for (int c = 0; c < args.grouped.head_dim; ++c) args.grad_vectors[c] *= sum(args);
                }));
  expect_caught("gated", "bound_slot_weights",
                after<kernels::PoolBackwardArgs>(
                    [&](const auto& args) { args.grad_weights[1] *= sum(args); }));
}
TEST(PlantedBackward, AMeanThatIsNotSubtractedIsSeen) {
  Spoil not_divided;
  not_divided.before = [](BackwardArgs& any) {
    auto* args = std::get_if<kernels::PoolBackwardArgs>(&any);
    if (args != nullptr) args->divide = false;
    return args != nullptr;
  };
  expect_caught("tfidf", "bound_slot_weights", not_divided);
  expect_caught("kpool_weights", "bound_gate_scores",
                after<kernels::ChannelSoftmaxBackwardArgs>([](const auto& args) {
                  args.grad_scores[5] = args.pool_weights[5] * args.grad_weights[5];
                }));
  expect_caught("composite", "bound_pool_matrix",
                after<kernels::RoleSoftmaxBackwardArgs>([](const auto& args) {
                  args.grad_matrix[1] = args.pool_weights[1] * args.grad_weights[1];
                }));
}
TEST(PlantedBackward, TheWrongSlotIsSeen) {
  expect_caught(
      "composite", "bound_held_vectors", after<kernels::PoolBackwardArgs>([](const auto& args) {
        const int dim = args.grouped.head_dim;
        std::swap_ranges(args.grad_vectors, args.grad_vectors + dim, args.grad_vectors + dim);
      }));
  expect_caught("csa", "bound_slot_weights",
                after<kernels::ChannelPoolBackwardArgs>([](const auto& args) {
                  const std::int64_t dim = args.grouped.head_dim;
                  float* const group = args.grad_weights + 2 * args.grouped.index_kpool * dim;
                  std::swap_ranges(group, group + dim, group + dim);
                }));
}
TEST(PlantedBackward, AnotherSlopeThanTheSigmoidsIsSeen) {
  const auto slope = [](const kernels::GateBackwardArgs& args) { return 1 - args.pool_weights[0]; };
  expect_caught("gated", "bound_vectors", after<kernels::GateBackwardArgs>([&](const auto& args) {
                  float& x = args.grad_vectors[3];
                  x = args.held_vectors[3] + (x - args.held_vectors[3]) / slope(args);
                }));
  expect_caught("gated", "bound_gate_vectors",
                after<kernels::GateBackwardArgs>(
                    [&](const auto& args) { args.grad_gate[9] /= slope(args); }));
  expect_caught("gated", "bound_gate_bias", after<kernels::GateBackwardArgs>([](const auto& args) {
                  args.grad_hidden_gates[0] += 0.1F;
                }));
}
TEST(PlantedBackward, TheHiddenPartOfAGateIsJudged) {
  expect_caught("gated", "bound_hidden_states",
                after<kernels::HiddenStatesBackwardArgs>(
                    [](const auto& args) { args.grad_hidden_states[17] *= 1.001F; }));
  expect_caught(
      "gated", "bound_gate_hidden",
      after<kernels::HiddenGateBackwardArgs>([](const auto& args) { args.grad_gate[2] += 0.01F; }));
}
TEST(PlantedBackward, ACosineThatIsOffIsSeenWhereverItGoes) {
  using kernels::CosineBackwardArgs;
  for (const char* policy : {"additive", "additive_raw", "tfidf"}) {
    expect_caught(policy, "bound_vectors", after<CosineBackwardArgs>([](const auto& args) {
                    args.grad_vectors[5] = args.held_vectors[5];
                  }));
    expect_caught(policy, "bound_queries", after<CosineBackwardArgs>([](const auto& args) {
                    args.grad_queries[70] *= 1.001F;
                  }));
    expect_caught(policy, "bound_cosines",
                  after<CosineBackwardArgs>([](const auto& args) { args.cosines[3] += 1e-4F; }));
  }
}
TEST(PlantedBackward, AScalarOfTheMixtureThatIsOffIsSeen) {
  for (int t = 0; t < 5; ++t)
    expect_caught("additive", "bound_term_rows",
                  after<kernels::AdditiveTermsBackwardArgs>([&](const auto& args) {
                    args.term_rows[t] += 0.01F + 0.01F * std::abs(args.term_rows[t]);
                  }));
  for (int t = 0; t < 3; ++t)
    expect_caught("tfidf", "bound_term_rows",
                  after<kernels::TfidfTermsBackwardArgs>([&](const auto& args) {
                    args.term_rows[t] += 0.01F + 0.01F * std::abs(args.term_rows[t]);
                  }));
  expect_caught(
      "tfidf", "bound_position_rows",
      after<kernels::TfidfTermsBackwardArgs>([](const auto& args) { args.position_rows[6] = 0; }));
}
TEST(PlantedBackward, ANormThatIsHeldFixedIsSeen) {
  expect_caught("csa", "bound_norm_rows",
                after<kernels::ChannelPoolBackwardArgs>(
                    [](const auto& args) { args.grad_norm[70] *= 1.0001F; }));
  Spoil another_eps;
  another_eps.before = [](BackwardArgs& any) {
    auto* args = std::get_if<kernels::ChannelPoolBackwardArgs>(&any);
    if (args != nullptr) args->norm_eps += 0.01F;
    return args != nullptr;
  };
  expect_caught("csa", "bound_held_vectors", another_eps);
}
TEST(PlantedBackward, ARowMissingFromASumIsSeen) {
  for (const auto& [policy, by] : {std::pair{"kpool_weights", "bound_position_bias"},
                                   {"csa", "bound_norm_weight"},
                                   {"composite", "bound_pool_weights"}}) {
    Spoil missing;
    missing.before = [](BackwardArgs& any) {
      auto* args = std::get_if<kernels::SumRowsArgs>(&any);
      if (args == nullptr || args->host_first[1] - args->host_first[0] < 2) return false;
      ++const_cast<std::int64_t*>(args->first)[0];
      return true;
    };
    expect_caught(policy, by, missing);
  }
}
TEST(PlantedBackward, ClippingBeforeTheSumIsSeen) {
  Spoil early;
  early.before = [](BackwardArgs& any) {
    auto* args = std::get_if<kernels::PoolBackwardArgs>(&any);
    if (args != nullptr) args->clip = true;
    return args != nullptr;
  };
  expect_caught("composite", "bound_slot_weights", early);
  Spoil only_early;  // where it is asked for
  only_early.before = [](BackwardArgs& any) {
    auto* args = std::get_if<kernels::SumRowsArgs>(&any);
    if (args == nullptr || !args->clip) return false;
    auto* values = const_cast<float*>(args->values);
    for (std::int64_t k = 0; k < args->host_first[args->segments] * args->width; ++k)
      values[k] = std::clamp(values[k], -1.0F, 1.0F);
    return true;
  };
  expect_caught("composite", "clip", only_early);
}
TEST(PlantedBackward, ClippingThatScalesOrIsForgottenIsSeen) {
  Spoil forgotten;
  forgotten.before = [](BackwardArgs& any) {
    auto* args = std::get_if<kernels::PoolBackwardArgs>(&any);
    if (args == nullptr || !args->clip) return false;
    args->clip = false;
    return true;
  };
  expect_caught("gated", "clip", forgotten);
  expect_caught("kpool_weights", "clip",
                after<kernels::ChannelPoolBackwardArgs>([](const auto& args) {
                  if (args.clip) args.grad_weights[1] *= 0.5F;
                }));
}

}  // namespace
}  // namespace indexpool::verify::policy
