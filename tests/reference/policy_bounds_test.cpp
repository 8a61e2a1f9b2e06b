// Enclosures admit the worst that their model allows, and little more.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "indexpool/reference/policy.hpp"

#include "policy_by_hand.hpp"
#include "policy_inputs.hpp"

namespace indexpool::reference {
namespace {

// Every error of the model at its worst, all in one direction.
constexpr double u = 0x1p-24, exp_error = 4.2 * u, quotient_error = 4 * u;

void expect_admitted(const Bounded& weights, std::size_t at, double worst) {
  const double answer = round_to(DType::f32, worst);
  EXPECT_TRUE(admits(weights.low[at], weights.high[at], answer))
      << answer << " outside " << weights.low[at] << " to " << weights.high[at];
}

TEST(PolicyBounds, AdmitTheWorstSoftmax) {
  for (const double z : {0.0, -1.0, -20.0}) {
    auto in = one_group("composite", 1, {1, 2});
    in.weights = RoleMatrix{f32({1, 2}, {0, z})};
    const auto weights = pool_weights(in);
    for (const int sign : {-1, 1}) {
      const double top = 1 + sign * exp_error;
      const double other = std::exp(z) * (1 - sign * (exp_error - 3 * z * u));
      const double sum = (top + other) * (1 - sign * u), off = 1 + sign * quotient_error;
      expect_admitted(weights, 0, top / sum * off);
      expect_admitted(weights, 1, other / ((top + other) * (1 + sign * u)) / off);
    }
  }
}

TEST(PolicyBounds, AdmitTheWorstSigmoid) {
  for (const double bias : {0.0, -3.0, 3.0, -40.0}) {
    auto in = one_group("gated", 1, {0, 0});
    in.weights = GateOperands{f32({1, 16}, {}), f32({1, 17}, {}), f32({1}, {bias})};
    const auto weights = pool_weights(in);
    for (const int sign : {-1, 1}) {
      const double off = 1 - sign * (exp_error + 2 * std::abs(bias) * u);
      const double bottom = (1 + std::exp(-bias) * off) * (1 - sign * u);
      expect_admitted(weights, 0, (1 + sign * quotient_error) / bottom);
    }
  }
}

TEST(PolicyBounds, AdmitTheWorstCosine) {
  constexpr std::int64_t dim = 64;
  auto in = one_group("additive_raw", dim, std::vector<double>(dim, 1));
  AdditiveTerms terms{f32({1, dim}, std::vector<double>(dim, 1)), f32({1, 1}, {}), f32({1, 1}, {})};
  terms.alpha = terms.gamma = 0;
  terms.beta = 1;
  terms.raw_cosine = true;
  in.weights = terms;
  const auto weights = pool_weights(in);
  for (const int sign : {-1, 1}) {
    const double dot = dim * (1 + sign * dim * u), square = dim * (1 - sign * dim * u);
    const double root = std::sqrt(square) * (1 - sign * 2 * u);
    const double cosine = dot / (root * root * (1 - sign * u)) * (1 + sign * quotient_error);
    expect_admitted(weights, 0, cosine * (1 + sign * u));
  }
}

// Half the width of the widest enclosure in units of 2^-24, on normal data of the published sizes;
// nothing is open. What the bounds add up to:
// * softmax: 2 * 3 |z - m| + (n + 1) 4.2 for exponentials, 2 n + 2 for sums and quotient; |z - m|
// up
//   to 7, and up to 9 for csa's eight;
// * content: D for the dot product, D |cos| for the lengths, 10 for roots and quotient, halved, by
//   its share in the weight;
// * gated: 11 for each 8 of the 1,024 hidden products and 66 for the vector's, by the sums of
//   magnitudes, about 20 and 2, and (1 - w) of that;
// * pooled: n - 1 or 2 n + 3, and a last place, by magnitudes of up to 4; csa: D / 2 and 10 more.
TEST(PolicyBounds, AreNarrowOnNormalData) {
  struct Expected {
    const char* policy;
    std::int64_t kpool, dim;
    double weight, pooled;  // relative to the weight; absolute, of vectors of unit variance
  };
  const Expected rows[] = {{"kpool", 4, 128, 75, 16},     {"composite", 4, 64, 75, 16},
                           {"additive", 4, 128, 140, 44}, {"gated", 4, 64, 60000, 44},
                           {"tfidf", 4, 2048, 1100, 44},  {"csa", 8, 128, 110, 600}};
  for (const Expected& row : rows) {
    PolicyDraw draw;
    draw.policy = row.policy;
    draw.mode = "fp8";
    draw.groups = 64;
    draw.kpool = row.kpool;
    draw.dim = row.dim;
    draw.hidden = 1024;
    const auto in = random_policy_inputs(draw);
    const auto weights = pool_weights(in);
    const auto pooled = pool(in, stored(weights)).before;
    double widest = 0, apart = 0;
    for (std::size_t i = 0; i < weights.value.size(); ++i) {
      if (weights.value[i] == 0) continue;  // absent
      widest = std::max(widest, (weights.high[i] - weights.low[i]) / 2 / weights.value[i]);
    }
    for (std::size_t i = 0; i < pooled.value.size(); ++i) {
      apart = std::max(apart, (pooled.high[i] - pooled.low[i]) / 2);
    }
    EXPECT_LT(widest * 0x1p24, row.weight) << row.policy;
    EXPECT_LT(apart * 0x1p24, row.pooled) << row.policy;
  }
}

}  // namespace
}  // namespace indexpool::reference
