// Gradients of the published poolings against finite differences in binary128.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "indexpool/reference/training/gradients.hpp"

#include "training_draws.hpp"

namespace indexpool::reference::training {
namespace {

constexpr double allowed = 1e-12;  // relative, element by element
// Every policy that is learnt, and given weights, which a caller may learn.
const std::vector<std::string> differentiated = [] {
  std::vector<std::string> names = {"plain_raw"};
  for (const PolicyInfo& policy : policies())
    if (policy.learnable) names.emplace_back(policy.name);
  return names;
}();

struct Draw {
  Pooling pooling;
  Arrays<Quad> arrays;
  std::vector<Quad> cotangent;  // gradient with respect to the pooled vectors
};
Draw draw(const std::string& policy, const Sizes& sizes, double scale = 1) {
  Source source(sizes.seed);
  Draw result;
  result.pooling = random_layout(policy, sizes, source);
  result.arrays = random_arrays<Quad>(result.pooling, source);
  result.cotangent =
      source.normals<Quad>(result.pooling.groups.size() * result.pooling.dim(), scale);
  return result;
}

// sum(cotangent * pooled): what is differentiated.
std::function<Quad(const Arrays<Quad>&)> value_of(const Draw& of) {
  return [&of](const Arrays<Quad>& arrays) {
    const auto w = forward_weights(of.pooling, arrays);
    return dot(forward_pool(of.pooling, arrays, w), of.cotangent);
  };
}
Arrays<Quad> gradient(const Draw& of, BackwardOptions options = {}) {
  const auto w = forward_weights(of.pooling, of.arrays);
  return backward(of.pooling, of.arrays, w, of.cotangent, options);
}
double error_of(const Draw& of, const Arrays<Quad>& found, std::size_t most = 6) {
  Source source(99);
  return worst_relative_error(value_of(of), of.arrays, found, most, source);
}

TEST(Gradients, AgreeWithDifferencesInBinary128ForEveryLearnablePolicyAndShape) {
  for (const std::string& policy : differentiated) {
    EXPECT_TRUE(rc::check(policy, [&] {
      Sizes sizes;
      const bool windows = find_policy(policy).grouping == Grouping::windows;
      sizes.index_kpool = *rc::gen::element<std::int64_t>(2, 4, 8);
      if (windows) sizes.index_kpool = *rc::gen::element<std::int64_t>(4, 8);
      sizes.head_dim = *rc::gen::inRange<std::int64_t>(1, 7);
      sizes.heads = *rc::gen::inRange<std::int64_t>(1, 3);
      sizes.groups = *rc::gen::inRange<std::int64_t>(1, 4);
      sizes.seed = *rc::gen::arbitrary<std::uint64_t>();
      const Draw of = draw(policy, sizes);
      RC_ASSERT(error_of(of, gradient(of), 4) < allowed);
    }));
  }
}

TEST(Gradients, InDoubleAgreeWithBinary128) {
  for (const std::string& policy : differentiated) {
    Sizes sizes;
    sizes.head_dim = 16, sizes.groups = 6, sizes.heads = 2;
    const Draw of = draw(policy, sizes);
    const Arrays<Quad> exact = gradient(of);
    Arrays<double> arrays;
    for (const auto& [name, values] : of.arrays)
      for (const Quad& x : values) arrays[name].push_back(to_double(x));
    std::vector<double> cotangent;
    for (const Quad& x : of.cotangent) cotangent.push_back(to_double(x));
    const auto w = forward_weights(of.pooling, arrays);
    for (const auto& [name, values] : backward(of.pooling, arrays, w, cotangent)) {
      double largest = 0, worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = to_double(exact.at(name)[i]);
        largest = std::max(largest, std::abs(expected));
        worst = std::max(worst, std::abs(expected - values[i]));
      }
      EXPECT_LE(worst, 1e-13 * largest) << policy << " " << name;
    }
  }
}

// The softmax of two equal scores: w = 1/2 each. C = (a + b) / 2, dC/da = 1/2, dC/dz_a = (a - b)/4.
TEST(Gradients, OfTwoTokensByHand) {
  Pooling p;
  p.policy = "kpool";
  p.index_kpool = 2, p.head_dim = 1;
  p.groups = {{0, 0, 0}};
  p.offsets = {0, 1};
  const Arrays<double> arrays = {
      {"vectors", {5, 1}}, {"gate_scores", {3, 3}}, {"position_bias", {0, 0}}};
  const auto w = forward_weights(p, arrays);
  EXPECT_EQ(w, (std::vector<double>{0.5, 0.5}));
  const auto grad = backward(p, arrays, w, {1.0});
  EXPECT_EQ(grad.at("vectors"), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(grad.at("gate_scores"), (std::vector<double>{1, -1}));
  EXPECT_EQ(grad.at("position_bias"), (std::vector<double>{1, -1}));
}

TEST(Gradients, StartFromTheStoredWeightsAndDoNotComputeThemAgain) {
  Sizes sizes;
  const Draw of = draw("kpool", sizes);
  std::vector<Quad> stored = forward_weights(of.pooling, of.arrays);
  for (Quad& w : stored) w = 0;
  stored[0] = 1;  // vector 0 of group 0, channel 0
  const auto grad = backward(of.pooling, of.arrays, stored, of.cotangent);
  EXPECT_EQ(grad.at("vectors")[0], of.cotangent[0]);
  for (std::size_t i = 1; i < grad.at("vectors").size(); ++i) EXPECT_EQ(grad.at("vectors")[i], 0);
  for (const Quad& x : grad.at("gate_scores")) EXPECT_EQ(x, 0);  // a softmax at its end is flat
}

TEST(Gradients, OfWeightsThatUnderflowAreThoseOfTheMean) {
  Sizes sizes;
  sizes.groups = 1;
  Draw of = draw("gated", sizes);
  of.arrays["gate_bias"] = {Quad(-1e4)};
  const auto grad = gradient(of);
  for (std::size_t i = 0; i < grad.at("vectors").size(); ++i)
    EXPECT_EQ(grad.at("vectors")[i], of.cotangent[i % of.pooling.dim()] / 4);
  for (const Quad& x : grad.at("gate_weight")) EXPECT_EQ(x, 0);
  EXPECT_LT(error_of(of, grad), allowed);
}

TEST(Gradients, OfAZeroVectorsCosineAreZero) {
  Sizes sizes;
  sizes.groups = 1;
  Draw of = draw("additive", sizes);
  for (std::size_t c = 0; c < of.pooling.dim(); ++c) of.arrays["vectors"][c] = 0;
  const auto w = forward_weights(of.pooling, of.arrays);
  std::vector<Quad> sum_of_weights(w.size(), Quad(0));
  sum_of_weights[0] = 1;
  Arrays<Quad> grad;
  for (const auto& [name, values] : of.arrays) grad[name].assign(values.size(), Quad(0));
  backward_through_weights(of.pooling, of.arrays, w, sum_of_weights, grad);
  for (const Quad& x : grad.at("vectors")) EXPECT_EQ(x, 0);
  for (const Quad& x : grad.at("queries")) EXPECT_EQ(x, 0);
}

// What is wrong on purpose must be seen.
TEST(DifferenceTest, SeesAWrongSignInAnyArray) {
  for (const std::string& policy : differentiated) {
    const Draw of = draw(policy, {});
    const auto right = gradient(of);
    ASSERT_LT(error_of(of, right), allowed) << policy;
    for (const auto& [name, values] : right) {
      auto wrong = right;
      for (Quad& x : wrong[name]) x = -x;
      EXPECT_GT(error_of(of, wrong), 1) << policy << " " << name;
    }
  }
}

TEST(DifferenceTest, SeesASoftmaxJacobianWithoutItsSecondTerm) {
  for (const char* policy : {"kpool", "composite"}) {
    const Draw of = draw(policy, {});
    const std::string name = of.pooling.per_channel() ? "position_bias" : "pool_matrix";
    const auto w = forward_weights(of.pooling, of.arrays);
    const auto held = backward_to_weights(of.pooling, of.arrays, w, of.cotangent);
    auto wrong = gradient(of);
    for (std::size_t i = 0; i < wrong[name].size(); ++i)
      wrong[name][i] = w[i] * held.pool_weights[i];
    EXPECT_GT(error_of(of, wrong), 1e-3) << policy;
  }
}

TEST(DifferenceTest, SeesADivisionWhoseDerivativeIsForgotten) {
  for (const char* policy : {"additive", "gated", "tfidf"}) {
    const Draw of = draw(policy, {});
    const auto w = forward_weights(of.pooling, of.arrays);
    auto held = backward_to_weights(of.pooling, of.arrays, w, of.cotangent);
    const auto pooled = forward_pool(of.pooling, of.arrays, w);
    for (std::size_t g = 0; g < of.pooling.groups.size(); ++g) {
      Quad along = 0, sum = 0;
      for (std::size_t c = 0; c < of.pooling.dim(); ++c)
        along += of.cotangent[g * of.pooling.dim() + c] * pooled[g * of.pooling.dim() + c];
      for (std::size_t i = 0; i < of.pooling.m(); ++i) sum += w[g * of.pooling.m() + i];
      for (std::size_t i = 0; i < of.pooling.m(); ++i)
        held.pool_weights[g * of.pooling.m() + i] += along / sum;  // dC . V_i instead of V_i - C
    }
    backward_through_weights(of.pooling, of.arrays, w, held.pool_weights, held.direct);
    EXPECT_GT(error_of(of, held.direct), 1e-3) << policy;
  }
}

}  // namespace
}  // namespace indexpool::reference::training
