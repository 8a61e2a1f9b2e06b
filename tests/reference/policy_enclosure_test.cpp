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

std::vector<std::string> vector_policies() {
  auto names = policy_names();
  std::erase(names, "block_max");
  return names;
}

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

// Elements outside their enclosures.
std::int64_t outside(const Bounded& bounds, std::span<const float> answers) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    count += !admits(bounds.low[i], bounds.high[i], static_cast<double>(answers[i]));
  }
  return count;
}

std::vector<float> stored(const Bounded& weights) {
  std::vector<float> result;
  for (const double w : weights.value) result.push_back(static_cast<float>(w));
  return result;
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

// Computed weights and pooled vectors together against the exact result: the exact one is what
// programs scatter around.
RC_GTEST_PROP(PolicyPool, ExactResultIsNearThePrograms, ()) {
  for (const auto& policy : vector_policies()) {
    const bool given = find_policy(policy).rule == WeightRule::given;
    if (given || policy == "additive_raw") continue;  // sums near zero
    auto draw = any_draw(policy);
    draw.family = Family::normal;
    draw.mode = "f32";
    const auto in = random_policy_inputs(draw);
    const auto weights = weights_f32(in, styles(draw.seed)[0]);
    const auto answers = pool_f32(in, weights, styles(draw.seed)[0]);
    const PolicyPooled pooled = pool(in, weights);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      RC_LOG(policy);
      RC_ASSERT(std::abs(pooled.exact.value[i] - static_cast<double>(answers[i])) < 1e-3);
    }
  }
}

}  // namespace
}  // namespace indexpool::reference
