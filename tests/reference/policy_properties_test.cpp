// Laws of the published forms of pooling.
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

constexpr double u = 0x1p-24;

PolicyDraw any_draw(const std::string& policy) {
  PolicyDraw draw;
  draw.policy = policy;
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  draw.groups = 5;
  draw.kpool = *rc::gen::element<std::int64_t>(2, 4, 8, 16);
  draw.mode = *rc::gen::element<std::string>("f32", "bf16");
  return draw;
}

const PolicyInfo& row(const PoolingInputs& in) { return find_policy(in.policy); }

// Ends of a channel of a group's present vectors.
std::pair<double, double> range_of(const PoolingInputs& in, std::size_t group,
                                   std::int64_t channel) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (auto i = static_cast<std::size_t>(in.groups[group].absent); i < in.offsets.size(); ++i) {
    const double x =
        in.vectors.at((in.groups[group].first_row + in.offsets[i]) * in.head_dim + channel);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  return {low, high};
}

template <class Visit>
void for_each_element(const PoolingInputs& in, const Visit& visit) {
  for (std::size_t g = 0; g < in.groups.size(); ++g) {
    for (std::int64_t c = 0; c < in.head_dim; ++c) {
      visit(g, c, g * static_cast<std::size_t>(in.head_dim) + static_cast<std::size_t>(c));
    }
  }
}

// Weights as a program computes them: each off by its sum and its quotient, and once more as they
// are added up.
RC_GTEST_PROP(PolicyWeights, OfASoftmaxOrADivisionSumToOneWithinTheirBound, ()) {
  for (const auto& policy : vector_policies()) {
    auto draw = any_draw(policy);
    const PolicyInfo& info = find_policy(policy);
    if (info.normalisation == Normalisation::none || !info.convex) continue;
    // A row of the matrix sums to 1 over all its vectors.
    draw.absent = info.rule != WeightRule::role_softmax;
    const auto in = random_policy_inputs(draw);
    const double n = static_cast<double>(draw.kpool);
    for (const Style& style : styles(draw.seed)) {
      const auto sums = pool(in, weights_f32(in, style)).weight_sum;
      for (std::size_t g = 0; g < sums.value.size(); ++g) {
        RC_LOG(policy + ", " + style.name);
        RC_ASSERT(sums.low[g] >= -(4 * n + 8) * u);
        RC_ASSERT(sums.high[g] <= (4 * n + 8) * u);
        RC_ASSERT(sums.low[g] <= sums.value[g]);
        RC_ASSERT(sums.high[g] >= sums.value[g]);
      }
    }
  }
}

TEST(PolicyWeights, TheirSumShowsWeightsThatDoNotAddUp) {
  PolicyDraw draw;
  draw.policy = "plain_raw";
  draw.groups = 1;
  auto in = random_policy_inputs(draw);
  const std::vector<float> weights = {0.25F, 0.5F, -0.125F, 2};
  const auto sum = pool(in, weights).weight_sum;
  EXPECT_EQ(sum.value[0], 1.625);
  EXPECT_NEAR(sum.low[0], 1.625, 1e-6);
  EXPECT_NEAR(sum.high[0], 1.625, 1e-6);
}

RC_GTEST_PROP(PolicyWeights, ProbabilitiesAndSharesAreNotNegative, (bool extreme)) {
  for (const char* policy : {"kpool", "csa", "composite", "gated", "additive", "tfidf"}) {
    auto draw = any_draw(policy);
    draw.extreme = extreme;
    const auto in = random_policy_inputs(draw);
    const auto weights = pool_weights(in);
    const bool share = row(in).rule != WeightRule::tfidf;  // its idf may exceed 1
    for (std::size_t i = 0; i < weights.value.size(); ++i) {
      RC_ASSERT(weights.value[i] >= 0);
      if (row(in).rule == WeightRule::gated || row(in).normalisation == Normalisation::softmax) {
        RC_ASSERT(weights.low[i] >= 0);
      }
      if (share) RC_ASSERT(weights.value[i] <= 1);
      if (share) RC_ASSERT(weights.high[i] <= 1 + 1e-5);
    }
  }
}

RC_GTEST_PROP(PolicyWeights, OfAbsentVectorsAreZero, ()) {
  for (const auto& policy : vector_policies()) {
    const auto draw = any_draw(policy);
    const auto in = random_policy_inputs(draw);
    const auto rule = row(in).rule;
    if (rule == WeightRule::given || rule == WeightRule::role_softmax) continue;  // sets of many
    const auto weights = pool_weights(in);
    const std::int64_t channels = in.per_channel() ? in.head_dim : 1;
    for (std::int64_t i = 0; i < in.groups[2].absent * channels; ++i) {
      const auto at = static_cast<std::size_t>(2 * in.index_kpool * channels + i);
      RC_ASSERT(weights.low[at] == 0);
      RC_ASSERT(weights.high[at] == 0);
    }
  }
}

TEST(PolicyPool, DoesNotReadAbsentVectors) {
  for (const auto& policy : vector_policies()) {
    PolicyDraw draw;
    draw.policy = policy;
    auto in = random_policy_inputs(draw);
    const auto weights = stored(pool_weights(in));
    const auto before = pool(in, weights);
    for (std::int64_t c = 0; c < in.head_dim; ++c) {
      in.vectors.set(2 * in.index_kpool * in.head_dim + c, std::nan(""));
    }
    const auto after = pool(in, weights);
    EXPECT_EQ(after.before.value, before.before.value) << policy;
    EXPECT_EQ(after.exact.low, before.exact.low) << policy;
  }
}

RC_GTEST_PROP(PolicyPool, OfAConvexFormStaysBetweenItsVectors, ()) {
  for (const auto& policy : vector_policies()) {
    auto draw = any_draw(policy);
    draw.absent = find_policy(policy).rule != WeightRule::role_softmax;
    const auto in = random_policy_inputs(draw);
    if (!row(in).convex || policy == "csa" || row(in).rule == WeightRule::given) continue;
    const auto pooled = pool(in, stored(pool_weights(in)));
    for_each_element(in, [&](std::size_t g, std::int64_t c, std::size_t at) {
      const auto [low, high] = range_of(in, g, c);
      const double slack = 64 * u * std::max(std::abs(low), std::abs(high));
      RC_LOG(policy);
      RC_ASSERT(pooled.exact.high[at] >= low);
      RC_ASSERT(pooled.exact.low[at] <= high);
      RC_ASSERT(pooled.before.value[at] >= low - slack);
      RC_ASSERT(pooled.before.value[at] <= high + slack);
    });
  }
}

RC_GTEST_PROP(PolicyPool, OfEqualVectorsIsThatVector, ()) {
  for (const auto& policy : vector_policies()) {
    auto draw = any_draw(policy);
    draw.family = Family::equal;
    draw.absent = false;
    const auto in = random_policy_inputs(draw);
    if (!row(in).sums_to_one || policy == "csa" || row(in).rule == WeightRule::given) continue;
    if (policy == "additive_raw") continue;  // its weights' sum may cancel
    const auto pooled = pool(in, stored(pool_weights(in)));
    for_each_element(in, [&](std::size_t, std::int64_t c, std::size_t at) {
      RC_LOG(policy);
      RC_ASSERT(pooled.exact.low[at] <= in.vectors.at(c));
      RC_ASSERT(pooled.exact.high[at] >= in.vectors.at(c));
      RC_ASSERT(std::abs(pooled.before.value[at] - in.vectors.at(c)) <=
                64 * u * std::abs(in.vectors.at(c)));
    });
  }
}

// Columns of a [rows, m, ..] tensor in reverse.
Tensor turned(const Tensor& tensor, std::int64_t m) {
  Tensor result = tensor.clone();
  const std::int64_t inner = tensor.shape().back() == m ? 1 : tensor.shape().back();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t row = i / inner / m, column = i / inner % m;
    result.set(i, tensor.at((row * m + m - 1 - column) * inner + i % inner));
  }
  return result;
}

PoolingInputs reversed(PoolingInputs in) {
  const std::int64_t m = in.index_kpool;
  std::ranges::reverse(in.offsets);
  if (auto* given = std::get_if<GivenWeights>(&in.weights)) {
    given->pool_weights = turned(given->pool_weights, m);
  } else if (auto* roles = std::get_if<RoleMatrix>(&in.weights)) {
    roles->pool_matrix = turned(roles->pool_matrix, m);
  } else if (auto* additive = std::get_if<AdditiveTerms>(&in.weights)) {
    additive->distances = turned(additive->distances, m);
    additive->ages = turned(additive->ages, m);
  } else if (auto* access = std::get_if<AccessTerms>(&in.weights)) {
    access->accesses = turned(access->accesses, m);
    access->groups_accessed = turned(access->groups_accessed, m);
    access->position_terms = turned(access->position_terms, m);
  } else if (auto* channel = std::get_if<ChannelScores>(&in.weights)) {
    channel->position_bias = turned(channel->position_bias, m);
  }
  return in;
}

RC_GTEST_PROP(PolicyPool, DoesNotDependOnTheOrderOfAGroup, ()) {
  for (const auto& policy : vector_policies()) {
    auto draw = any_draw(policy);
    draw.absent = false;
    draw.dim = 32;  // not m, which `turned` tells apart by size
    const auto in = random_policy_inputs(draw), other = reversed(in);
    const auto weights = pool_weights(in), back = pool_weights(other);
    const auto before = pool(in, stored(weights));
    const auto after = pool(other, stored(back));
    RC_LOG(policy);
    for (std::size_t i = 0; i < before.before.value.size(); ++i) {
      RC_ASSERT(after.exact.low[i] <= before.exact.high[i]);
      RC_ASSERT(after.exact.high[i] >= before.exact.low[i]);
      // The stored weights may differ by a rounding on either side.
      const double reach = before.before.high[i] - before.before.low[i] + 1e-6;
      if (policy == "additive_raw") continue;
      RC_ASSERT(std::abs(after.before.value[i] - before.before.value[i]) <= 4 * reach);
    }
  }
}

RC_GTEST_PROP(PolicyPool, ScalesExactlyWithPowersOfTwo, ()) {
  const int power = *rc::gen::inRange(-20, 21);
  for (const auto& policy : vector_policies()) {
    if (policy == "csa") continue;  // its norm undoes it
    const auto draw = any_draw(policy);
    auto in = random_policy_inputs(draw);
    const auto weights = stored(pool_weights(in));
    const auto before = pool(in, weights);
    for (std::int64_t i = 0; i < in.vectors.size(); ++i) {
      in.vectors.set(i, std::ldexp(in.vectors.at(i), power));
    }
    const auto after = pool(in, weights);
    RC_LOG(policy);
    for (std::size_t i = 0; i < before.before.value.size(); ++i) {
      RC_ASSERT(after.before.value[i] == std::ldexp(before.before.value[i], power));
      RC_ASSERT(after.pooled.value[i] == std::ldexp(before.pooled.value[i], power));
      if (before.before.low[i] > 0) {  // but for the spacing of subnormal numbers
        RC_ASSERT(std::abs(after.before.low[i] / std::ldexp(before.before.low[i], power) - 1) <
                  1e-6);
      }
    }
  }
}

// Cosines do not see the length of query or vector.
RC_GTEST_PROP(PolicyWeights, OfContentDoNotSeeTheLengthOfAVector, ()) {
  const int power = *rc::gen::inRange(-20, 21);
  for (const char* policy : {"additive", "additive_raw", "tfidf"}) {
    auto in = random_policy_inputs(any_draw(policy));
    const auto before = pool_weights(in);
    for (std::int64_t i = 0; i < in.vectors.size(); ++i) {
      in.vectors.set(i, std::ldexp(in.vectors.at(i), power));
    }
    RC_ASSERT(pool_weights(in).value == before.value);
  }
}

RC_GTEST_PROP(PolicyPrecision, Binary64AgreesWithBinary128, ()) {
  for (const auto& policy : vector_policies()) {
    auto draw = any_draw(policy);
    draw.groups = 3;
    draw.dim = 16;
    draw.family = *rc::gen::element(Family::normal, Family::log_uniform, Family::tiny, Family::huge,
                                    Family::sparse);
    draw.extreme = *rc::gen::arbitrary<bool>();
    const auto in = random_policy_inputs(draw);
    const auto narrow = pool_weights(in), wide = pool_weights(in, Precision::binary128);
    RC_LOG(policy);
    RC_ASSERT(outside(narrow, stored(wide)) == 0);
    for (std::size_t i = 0; i < wide.value.size(); ++i) {
      RC_ASSERT(is_open(narrow.low[i], narrow.high[i]) == is_open(wide.low[i], wide.high[i]));
    }
    const auto weights = stored(narrow);
    const auto pooled = pool(in, weights), finer = pool(in, weights, Precision::binary128);
    RC_ASSERT(pooled.fallback == finer.fallback);
    RC_ASSERT(outside(pooled.before, stored(finer.before)) == 0);
    for (std::size_t i = 0; i < pooled.exact.value.size(); ++i) {
      RC_ASSERT(pooled.exact.low[i] <= finer.exact.value[i]);
      RC_ASSERT(pooled.exact.high[i] >= finer.exact.value[i]);
    }
  }
}

// The shipped indexer's softmax, keys and gate scores, by another file of this layer.
RC_GTEST_PROP(PolicyPool, OfChannelSoftmaxAgreesWithTheShippedIndexer, ()) {
  auto draw = any_draw("kpool");
  draw.absent = false;
  draw.mode = "bf16";
  const auto in = random_policy_inputs(draw);
  const auto& scores = std::get<ChannelScores>(in.weights);
  IndexerInputs shipped;
  shipped.config.index_head_dim = in.head_dim;
  shipped.config.index_kpool = in.index_kpool;
  shipped.mode = numeric_mode("bf16");
  shipped.mode.pooled = DType::f32;
  shipped.mode.hadamard = false;
  shipped.sequences = {{0, in.group_count() * in.index_kpool, 0}};
  shipped.keys = in.vectors;
  shipped.gate_scores = scores.gate_scores;
  shipped.ape = scores.position_bias;
  const Pooled expected = pool(shipped);
  const auto found = pool(in, stored(pool_weights(in)));
  for (std::size_t i = 0; i < found.exact.value.size(); ++i) {
    RC_ASSERT(std::abs(found.exact.value[i] - expected.exact.value[i]) <= 1e-13);
    // Weights rounded to f32 move the sum by less than its bound of 4 n + 50 u max |v|.
    RC_ASSERT(found.before.value[i] >= expected.pooled.low[i] - 4e-6);
    RC_ASSERT(found.before.value[i] <= expected.pooled.high[i] + 4e-6);
  }
}

}  // namespace
}  // namespace indexpool::reference
