// Clipping: of weight gradients before they go on, of the gradients' norm; and the forward pass
// beside the reference's.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "training_draws.hpp"

namespace indexpool::reference::training {
namespace {

struct Clipped {
  Pooling pooling;
  Arrays<Quad> arrays;
  std::vector<Quad> cotangent, weights, clipped;
};
// Cotangents of about 3: some weight gradients lie beyond 1, some within.
Clipped clipped_draw(const std::string& policy, std::uint64_t seed) {
  Source source(seed);
  Clipped of;
  Sizes sizes;
  sizes.seed = seed, sizes.groups = 3;
  of.pooling = random_layout(policy, sizes, source);
  of.arrays = random_arrays<Quad>(of.pooling, source);
  of.cotangent = source.normals<Quad>(of.pooling.groups.size() * of.pooling.dim(), 3);
  of.weights = forward_weights(of.pooling, of.arrays);
  of.clipped = backward_to_weights(of.pooling, of.arrays, of.weights, of.cotangent).pool_weights;
  return of;
}

// With the clipped weight gradients held fixed, the clipped backward pass is the gradient of
// sum(cotangent * pooled(stored weights)) + sum(clipped * weights).
double error_of(const Clipped& of, const Arrays<Quad>& found) {
  const auto value = [&of](const Arrays<Quad>& arrays) {
    return Quad(dot(forward_pool(of.pooling, arrays, of.weights), of.cotangent) +
                dot(forward_weights(of.pooling, arrays), of.clipped));
  };
  Source source(7);
  return worst_relative_error(value, of.arrays, found, 6, source);
}

TEST(Clipping, OfWeightGradientsHappensBeforeTheyGoOn) {
  for (const char* policy : {"kpool", "composite", "additive", "gated", "tfidf", "csa"}) {
    Clipped of = clipped_draw(policy, 5);
    ASSERT_GT(clip_to_unit(of.clipped), 0) << policy;
    const auto right = backward(of.pooling, of.arrays, of.weights, of.cotangent, {true});
    EXPECT_LT(error_of(of, right), 1e-12) << policy;
    // Clipped after the chain instead of inside it, or not at all: seen.
    auto after = backward(of.pooling, of.arrays, of.weights, of.cotangent);
    EXPECT_GT(error_of(of, after), 1e-3) << policy;
    for (auto& [name, values] : after) clip_to_unit(values);
    EXPECT_GT(error_of(of, after), 1e-3) << policy;
  }
}

TEST(Clipping, IntoTheUnitIntervalIsExact) {
  const double next = std::nextafter(1.0, 2.0), below = std::nextafter(1.0, 0.0);
  std::vector<double> x = {-3, -1, -below, -0.0, 0x1p-1074, below, 1, next, HUGE_VAL, -next};
  EXPECT_EQ(clip_to_unit(x), 4);
  const std::vector<double> expected = {-1, -1, -below, -0.0, 0x1p-1074, below, 1, 1, 1, -1};
  EXPECT_EQ(x, expected);
  EXPECT_TRUE(std::signbit(x[3]));
}

TEST(Clipping, OfTheNormKeepsTheDirectionAndTouchesNothingWithinTheLimit) {
  Arrays<double> small = {{"a", {0.6}}, {"b", {0, 0.8}}};
  const Arrays<double> before = small;
  EXPECT_EQ(clip_norm(small, 1.0), 1.0);
  EXPECT_EQ(small, before);
  EXPECT_TRUE(rc::check("norm", [] {
    Source source(*rc::gen::arbitrary<std::uint64_t>());
    Arrays<double> grad = {{"a", source.normals<double>(5)}, {"b", source.normals<double>(3)}};
    const Arrays<double> given = grad;
    const double norm = clip_norm(grad, 1.0);
    const double after = std::sqrt(dot(grad["a"], grad["a"]) + dot(grad["b"], grad["b"]));
    RC_ASSERT(after <= 1 + 1e-15 || norm <= 1);
    for (const auto& [name, values] : given) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = norm > 1 ? values[i] / norm : values[i];
        RC_ASSERT(std::abs(grad[name][i] - expected) <= 4e-16 * std::abs(expected));
      }
    }
  }));
}

TEST(Arrays, AMissingOrMisshapenArrayIsNamed) {
  Source source(1);
  const Pooling p = random_layout("gated", {}, source);
  Arrays<double> arrays = random_arrays<double>(p, source);
  const auto refuses = [&](const Arrays<double>& given, const std::string& text) {
    try {
      check_arrays(p, given);
      ADD_FAILURE() << text;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  Arrays<double> missing = arrays;
  missing.erase("gate_bias");
  refuses(missing, "gate_bias: missing");
  arrays["gate_bias"].push_back(0);
  refuses(arrays, "gate_bias: found 2 numbers, expected 1");
  arrays["gate_bias"].pop_back();
  arrays["vectors"].pop_back();
  refuses(arrays, "vectors: found 31 numbers");
}

}  // namespace
}  // namespace indexpool::reference::training
