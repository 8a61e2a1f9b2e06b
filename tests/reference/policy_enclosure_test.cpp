// Enclosures of the published forms contain binary32 programs of many kinds and exclude wrong ones.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/policy.hpp"

#include "policy_inputs.hpp"
#include "policy_programs.hpp"

namespace indexpool::reference {
namespace {

PolicyDraw any_draw(const std::string& policy) {
  PolicyDraw draw;
  draw.policy = policy;
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  draw.mode = *rc::gen::element<std::string>("f32", "f16", "bf16", "fp8");
  draw.groups = *rc::gen::inRange<std::int64_t>(1, 7);
  draw.kpool = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 8, 16);
  draw.dim = *rc::gen::element<std::int64_t>(16, 32, 64);
  draw.family = *rc::gen::element(Family::normal, Family::log_uniform, Family::tiny, Family::huge,
                                  Family::sparse, Family::equal);
  draw.extreme = *rc::gen::arbitrary<bool>();
  draw.weight_scale = *rc::gen::element(1.0, 1e-38, 1e-40, 1e20);
  return draw;
}

RC_GTEST_PROP(PolicyWeights, ContainEveryBinary32Program, ()) {
  for (const auto& policy : vector_policies()) {
    const auto draw = any_draw(policy);
    const auto in = random_policy_inputs(draw);
    const Bounded weights = pool_weights(in);
    for (const Style& style : styles(draw.seed)) {
      RC_LOG(policy + ", " + draw.mode + ", " + style.name);
      RC_ASSERT(outside(weights, weights_f32(in, style)) == 0);
    }
  }
}

RC_GTEST_PROP(PolicyPool, ContainsEveryBinary32Program, ()) {
  for (const auto& policy : vector_policies()) {
    const auto draw = any_draw(policy);
    const auto in = random_policy_inputs(draw);
    const auto weights = stored(pool_weights(in));
    const PolicyPooled pooled = pool(in, weights);
    for (const Style& style : styles(draw.seed)) {
      RC_LOG(policy + ", " + draw.mode + ", " + style.name);
      auto answers = pool_f32(in, weights, style);
      RC_ASSERT(outside(pooled.before, answers) == 0);
      for (float& x : answers) {
        x = static_cast<float>(round_to(in.mode.pooled, static_cast<double>(x)));
      }
      RC_ASSERT(outside(pooled.pooled, answers) == 0);
    }
  }
}

// The formulas themselves: a program is near what infinite precision gives.
RC_GTEST_PROP(PolicyPool, ExactResultIsNearAProgram, ()) {
  for (const auto& policy : vector_policies()) {
    const bool given = find_policy(policy).rule == WeightRule::given;
    if (given || policy == "additive_raw") continue;  // sums near zero
    auto draw = any_draw(policy);
    draw.family = Family::normal;
    draw.mode = "f32";
    draw.extreme = false;
    const auto in = random_policy_inputs(draw);
    const Style style = styles(draw.seed)[0];
    const auto weights = weights_f32(in, style);
    const auto answers = pool_f32(in, weights, style);
    const PolicyPooled pooled = pool(in, weights);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      RC_LOG(policy);
      RC_ASSERT(std::abs(pooled.exact.value[i] - static_cast<double>(answers[i])) < 1e-4);
    }
  }
}

struct Planted {
  std::string policy;
  Mistake mistake;
  Family family = Family::normal;
};

std::int64_t caught(const Planted& planted, const std::string& mode, bool of_weights) {
  PolicyDraw draw;
  draw.policy = planted.policy;
  draw.mode = mode;
  draw.family = planted.family;
  draw.groups = 12;
  const auto in = random_policy_inputs(draw);
  std::int64_t count = 0;
  for (const Style& style : styles(draw.seed)) {
    const Bounded weights = pool_weights(in);
    if (of_weights) {
      count += outside(weights, weights_f32(in, style, planted.mistake));
    } else {
      const auto given = stored(weights);
      count += outside(pool(in, given).before, pool_f32(in, given, style, planted.mistake));
    }
  }
  return count;
}

TEST(PolicyWeights, ExcludeWrongPrograms) {
  const Planted mistakes[] = {{"composite", Mistake::denominator_drops_one},
                              {"kpool_weights", Mistake::denominator_drops_one},
                              {"kpool_weights", Mistake::absent_counted},
                              {"csa", Mistake::absent_counted},
                              {"additive", Mistake::beta_and_gamma_swapped},
                              {"additive", Mistake::cosine_without_norm},
                              {"additive", Mistake::absent_counted},
                              {"additive", Mistake::narrow_accumulator},
                              {"additive_raw", Mistake::cosine_without_norm},
                              {"gated", Mistake::absent_counted},
                              {"gated", Mistake::narrow_accumulator},
                              {"tfidf", Mistake::binary_logarithm},
                              {"tfidf", Mistake::cosine_without_norm},
                              {"tfidf", Mistake::absent_counted}};
  for (const Planted& planted : mistakes) {
    const int number = static_cast<int>(planted.mistake);
    for (const char* mode : {"f32", "bf16"}) {
      EXPECT_GT(caught(planted, mode, true), 0) << planted.policy << ", mistake " << number;
      EXPECT_EQ(caught({planted.policy, Mistake::none}, mode, true), 0) << planted.policy;
    }
  }
}

TEST(PolicyPool, ExcludesWrongPrograms) {
  const Planted mistakes[] = {
      {"additive", Mistake::denominator_drops_one}, {"additive", Mistake::mean_instead},
      {"additive", Mistake::narrow_accumulator},    {"gated", Mistake::denominator_drops_one},
      {"tfidf", Mistake::narrow_accumulator},       {"plain", Mistake::narrow_accumulator},
      {"plain_raw", Mistake::absent_counted},       {"kpool_weights", Mistake::mean_instead},
      {"csa", Mistake::narrow_accumulator},         {"csa", Mistake::rope_sign},
      {"csa", Mistake::no_eps, Family::small}};
  for (const Planted& planted : mistakes) {
    const int number = static_cast<int>(planted.mistake);
    EXPECT_GT(caught(planted, "bf16", false), 0) << planted.policy << ", mistake " << number;
    EXPECT_EQ(caught({planted.policy, Mistake::none, planted.family}, "bf16", false), 0)
        << planted.policy;
  }
}

}  // namespace
}  // namespace indexpool::reference
