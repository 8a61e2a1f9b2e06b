// What follows the gradients of additive and tfidf weights: values are the gradients of
// reference/training, binary32 programs of many kinds lie inside, wrong ones do not.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/policy_backward.hpp"
#include "indexpool/reference/training/gradients.hpp"

#include "backward_draws.hpp"
#include "backward_term_programs.hpp"

namespace indexpool::reference {
namespace {

constexpr const char* policies[] = {"additive", "additive_raw", "tfidf"};
constexpr std::int64_t all = 1 << 20;  // groups in one row

Bounded part(const Bounded& of, std::size_t k) {
  Bounded one(Shape{1});
  one.value[0] = of.value[k], one.low[0] = of.low[k], one.high[0] = of.high[k];
  return one;
}

RC_GTEST_PROP(PolicyBackwardTerms, ValuesAreTheGradientsOfTraining, ()) {
  for (const char* policy : policies) {
    RC_LOG(policy);
    const Backward of = backward_of(any_draw(policy));
    const auto operands = training::operands_of(of.in);
    auto through = training::Arrays<double>{};
    for (const auto& [name, values] : operands.arrays) through[name].assign(values.size(), 0.0);
    training::backward_through_weights(operands.pooling, operands.arrays, doubles(of.weights),
                                       doubles(of.grad_weights), through);
    const std::vector<float> none(of.held.size());
    const auto cosines = through_cosines(of.in, of.grad_weights, none);
    expect_same(cosines.vectors, through["vectors"], "vectors");
    expect_same(cosines.queries, through["queries"], "queries");
    // Cosines as they are, so that only their rounding is between both.
    const auto cosine = stored(cosines.cosines);
    const auto scalars = through_terms(of.in, of.grad_weights, cosine, all);
    const bool tfidf = std::string(policy) == "tfidf";
    if (tfidf)
      expect_same(summed(scalars.position_terms, static_cast<std::size_t>(of.in.index_kpool)),
                  through["position_terms"], "position terms");
    if (of.in.group_count() == 0) continue;
    if (tfidf) expect_same(part(scalars.terms, 0), {through["mix"][0]}, "mix 0");
    if (tfidf) expect_same(part(scalars.terms, 1), {through["mix"][1]}, "mix 1");
    const std::pair<std::size_t, const char*> names[] = {
        {0, "alpha"}, {2, "gamma"}, {3, "sigma"}, {4, "tau"}};
    for (const auto& [k, name] : names)
      if (!tfidf) expect_same(part(scalars.terms, k), through[name], name);
  }
}

// The share of content depends on the cosines, which are known exactly here.
TEST(PolicyBackwardTerms, ContentsShareIsTheSumOfWhatItWeighs) {
  for (const char* policy : policies) {
    PolicyDraw draw;
    draw.policy = policy;
    draw.absent = false;
    const Backward of = backward_of(draw);
    std::vector<float> cosines(of.grad_weights.size());
    double raw = 0, content = 0;
    for (std::size_t k = 0; k < cosines.size(); ++k) {
      cosines[k] = static_cast<float>(static_cast<double>(k % 9) / 4 - 1);
      raw += static_cast<double>(of.grad_weights[k]) * cosines[k];
      content += of.grad_weights[k] * (1 + static_cast<double>(cosines[k])) / 2;
    }
    const auto terms = through_terms(of.in, of.grad_weights, cosines, all).terms;
    const bool tfidf = std::string(policy) == "tfidf";
    const double expected = std::string(policy) == "additive_raw" ? raw : content;
    EXPECT_NEAR(terms.value[tfidf ? 2 : 1], expected, 1e-12) << policy;
  }
}

std::int64_t outside_of(const Backward& of, const Style& style,
                        TermMistake mistake = TermMistake::none, std::int64_t groups_per_row = 2) {
  const auto cosines = through_cosines(of.in, of.grad_weights, of.held);
  const auto answers = CosineBackwardF32(of.in, of.grad_weights, style, mistake).run(of.held);
  const auto scalars = through_terms(of.in, of.grad_weights, answers.cosines, groups_per_row);
  const TermSumsF32 sums(of.in, of.grad_weights, answers.cosines, groups_per_row, style, mistake);
  return outside(cosines.vectors, answers.vectors) + outside(cosines.queries, answers.queries) +
         outside(cosines.cosines, answers.cosines) + outside(scalars.terms, sums.terms()) +
         outside(scalars.position_terms, sums.position_rows());
}

RC_GTEST_PROP(PolicyBackwardTerms, ContainEveryBinary32Program, ()) {
  for (const char* policy : policies) {
    const Backward of = backward_of(any_draw(policy));
    for (const Style& style : styles(*rc::gen::arbitrary<std::uint64_t>())) {
      RC_LOG(std::string(policy) + ", " + style.name);
      RC_ASSERT(outside_of(of, style) == 0);
    }
  }
}

RC_GTEST_PROP(PolicyBackwardTerms, Binary128LiesInside, ()) {
  auto draw = any_draw(*rc::gen::element<std::string>("additive", "additive_raw", "tfidf"));
  draw.groups = std::min<std::int64_t>(draw.groups, 2);
  draw.dim = 16;
  const Backward of = backward_of(draw);
  const auto cosines = through_cosines(of.in, of.grad_weights, of.held),
             wide = through_cosines(of.in, of.grad_weights, of.held, Precision::binary128);
  const auto stored_cosines = stored(cosines.cosines);
  const auto scalars = through_terms(of.in, of.grad_weights, stored_cosines, 3),
             wide_scalars =
                 through_terms(of.in, of.grad_weights, stored_cosines, 3, Precision::binary128);
  const auto inside = [](const Bounded& bounds, const Bounded& values) {
    for (std::size_t k = 0; k < bounds.value.size(); ++k)
      RC_ASSERT(admits(bounds.low[k], bounds.high[k], values.value[k]));
  };
  inside(cosines.vectors, wide.vectors);
  inside(cosines.queries, wide.queries);
  inside(cosines.cosines, wide.cosines);
  inside(scalars.terms, wide_scalars.terms);
  inside(scalars.position_terms, wide_scalars.position_terms);
}

TEST(PolicyBackwardTerms, ExcludeWrongPrograms) {
  using enum TermMistake;
  const std::pair<const char*, TermMistake> planted[] = {
      {"additive", norm_of_vector_fixed},  {"tfidf", norm_of_vector_fixed},
      {"additive", norm_of_query_fixed},   {"additive_raw", norm_of_query_fixed},
      {"additive", halves_forgotten},      {"tfidf", halves_forgotten},
      {"additive", held_forgotten},        {"tfidf", held_forgotten},
      {"additive_raw", width_not_cubed},   {"additive", width_not_cubed},
      {"additive_raw", decay_not_squared}, {"additive", shares_swapped},
      {"tfidf", absent_accesses}};
  for (const auto& [policy, mistake] : planted) {
    PolicyDraw draw;
    draw.policy = policy;
    draw.mode = "bf16";
    draw.groups = 6;
    const Backward of = backward_of(draw);
    for (const Style& style : styles(1)) {
      EXPECT_GT(outside_of(of, style, mistake), 0)
          << policy << ", " << style.name << ", mistake " << static_cast<int>(mistake);
      EXPECT_EQ(outside_of(of, style), 0) << policy << ", " << style.name;
    }
  }
}

TEST(PolicyBackwardTerms, AZeroVectorsCosineHasNoGradient) {
  PolicyDraw draw;
  draw.policy = "additive";
  draw.absent = false;
  Backward of = backward_of(draw);
  const std::int64_t row = of.in.groups[0].first_row + of.in.offsets[1];
  for (std::int64_t c = 0; c < of.in.head_dim; ++c) of.in.vectors.set(row * of.in.head_dim + c, 0);
  const auto found = through_cosines(of.in, of.grad_weights, of.held);
  EXPECT_EQ(found.cosines.high[1], 0);
  for (std::size_t c = 0; c < 32; ++c) {
    EXPECT_EQ(found.vectors.low[32 + c], of.held[32 + c]);
    EXPECT_EQ(found.vectors.high[32 + c], of.held[32 + c]);
  }
}

// 32 channels, every vector and query the same number in all of them, no vector absent.
Backward constant(double query, double vector, float gradient) {
  PolicyDraw draw;
  draw.policy = "additive_raw";
  draw.absent = false;
  Backward of = backward_of(draw);
  auto& terms = std::get<AdditiveTerms>(of.in.weights);
  terms.beta = 1;
  for (std::int64_t k = 0; k < terms.queries.size(); ++k) terms.queries.set(k, query);
  for (std::int64_t k = 0; k < of.in.vectors.size(); ++k) of.in.vectors.set(k, vector);
  for (float& b : of.grad_weights) b = gradient;
  return of;
}
bool opens(const Bounded& bounds) { return is_open(bounds.low[0], bounds.high[0]); }

TEST(PolicyBackwardTerms, AreOpenWhereWhatAQueryTakesFromItselfMayOverflowBeforeItIsDivided) {
  const Backward near = constant(1, 1, 0x1p125F), far = constant(1, 1, 0x1p127F);
  EXPECT_FALSE(opens(through_cosines(near.in, near.grad_weights, near.held).queries));
  EXPECT_TRUE(opens(through_cosines(far.in, far.grad_weights, far.held).queries));
}
TEST(PolicyBackwardTerms, AreOpenWhereAZeroVectorsWeightHasNoFiniteGradient) {
  Backward of = constant(1, 0, 1);
  EXPECT_FALSE(opens(through_cosines(of.in, of.grad_weights, of.held).queries));
  of.grad_weights[0] = HUGE_VALF;
  EXPECT_TRUE(opens(through_cosines(of.in, of.grad_weights, of.held).queries));
}
TEST(PolicyBackwardTerms, AreTightWhateverTheLengthsOfQueryAndVector) {
  for (const auto& [query, vector] : {std::pair{0x1p28, 0x1p-60}, {0x1p-60, 0x1p28}}) {
    const Backward of = constant(query, vector, 1);
    const std::vector<float> none(of.held.size());
    const auto found = through_cosines(of.in, of.grad_weights, none);
    // Two terms that cancel, each 1 / (32 |x|) large.
    EXPECT_LT(found.queries.high[0] - found.queries.low[0], 1e-4 / (32 * query));
    EXPECT_LT(found.vectors.high[0] - found.vectors.low[0], 1e-4 / (32 * vector));
  }
}

// exp(-x^2 / 2) x^2 of a distance whose square binary32 does not hold is 0, not 0 times infinity.
TEST(PolicyBackwardTerms, FarTooFarAwayIsNoGradientAndNoNan) {
  PolicyDraw draw;
  draw.policy = "additive";
  Backward of = backward_of(draw);
  auto& terms = std::get<AdditiveTerms>(of.in.weights);
  for (std::int64_t k = 0; k < terms.distances.size(); ++k) {
    terms.distances.set(k, 0x1p100);
    terms.ages.set(k, 0x1p100);
  }
  const std::vector<float> cosines(of.grad_weights.size());
  const auto found = through_terms(of.in, of.grad_weights, cosines, all).terms;
  for (const std::size_t k : {0, 2, 3, 4}) {
    EXPECT_FALSE(admits(found.low[k], found.high[k], NAN));
    EXPECT_LT(found.high[k], 1e-30);
  }
}

TEST(PolicyBackwardTerms, WhatDoesNotFitIsRefusedByName) {
  PolicyDraw draw;
  draw.policy = "tfidf";
  const Backward of = backward_of(draw);
  EXPECT_THROW(through_cosines(of.in, {}, of.held), ConfigError);
  EXPECT_THROW(through_cosines(of.in, of.grad_weights, {}), ConfigError);
  EXPECT_THROW(through_terms(of.in, of.grad_weights, {}, 1), ConfigError);
  EXPECT_THROW(through_terms(of.in, of.grad_weights, of.grad_weights, 0), ConfigError);
  draw.policy = "gated";
  const Backward gated = backward_of(draw);
  EXPECT_THROW(through_cosines(gated.in, gated.grad_weights, gated.held), ConfigError);
  EXPECT_THROW(through_terms(gated.in, gated.grad_weights, gated.grad_weights, 1), ConfigError);
}

}  // namespace
}  // namespace indexpool::reference
