// Quantisation inside training: what rounds, what is noise, where gradients stop.
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "indexpool/reference/training/objective.hpp"

namespace indexpool::reference::training {
namespace {

TEST(FakeQuantise, OffAndF16AreExactWhereTheyShouldBe) {
  const std::vector<double> x = {0, 1, -0.333, 70000, 1e-9};
  EXPECT_EQ(fake_quantise(x, Width::off).values, x);
  const auto f16 = fake_quantise(x, Width::f16);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(f16.values[i], i == 3 ? 65504 : round_to(DType::f16, x[i]));
  EXPECT_EQ(f16.inside, (std::vector<char>{1, 1, 1, 0, 1}));
}

TEST(FakeQuantise, HasAtMost255CodesAndClipsOnlyTheOutliers) {
  EXPECT_TRUE(rc::check("int8", [] {
    const auto n = *rc::gen::inRange<int>(1500, 3000);
    const auto phase = *rc::gen::inRange<int>(0, 1000);
    std::vector<double> x;
    for (int i = 0; i < n; ++i) x.push_back(std::sin(0.7 * i + phase) * (i % 1000 == 7 ? 9 : 1));
    const auto found = fake_quantise(x, Width::i8);
    const std::set<double> codes(found.values.begin(), found.values.end());
    RC_ASSERT(codes.size() <= 255u);
    const double largest = *codes.rbegin();
    std::int64_t clipped = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      clipped += found.inside[i] == 0;
      const double step = largest / 127;
      if (found.inside[i])
        RC_ASSERT(std::abs(found.values[i] - x[i]) <= step / 2 * 1.001);
      else
        RC_ASSERT(std::abs(x[i]) > largest && std::abs(found.values[i]) <= largest * 1.001);
    }
    RC_ASSERT(clipped <= n / 500);
  }));
}

TEST(FakeQuantise, NoiseStaysWithinHalfASpacingAndIsThatOfItsSeed) {
  std::vector<double> x;
  for (int i = 0; i < 4000; ++i) x.push_back(std::cos(0.01 * i));
  for (const Width width : {Width::i8, Width::e4m3, Width::f16}) {
    const auto noisy = add_quantiser_noise(x, width, 1, 2);
    EXPECT_EQ(noisy.values, add_quantiser_noise(x, width, 1, 2).values);
    EXPECT_NE(noisy.values, add_quantiser_noise(x, width, 2, 2).values);
    double sum = 0, square = 0, worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (noisy.inside[i] == 0) continue;
      const double error = noisy.values[i] - x[i];
      sum += error;
      square += error * error;
      worst = std::max(worst, std::abs(error));
    }
    const double spread = std::sqrt(square / 4000);
    EXPECT_LT(std::abs(sum / 4000), 4 * spread / std::sqrt(4000.0));  // unbiased
    // Steps below the largest magnitude, 1: of 127, of 448 in steps of 32, of 2^-11.
    const double half = width == Width::i8     ? 0.5 / 127
                        : width == Width::e4m3 ? 16.0 / 448
                                               : 0x1p-12;
    EXPECT_LE(worst, half * 1.001);
    EXPECT_GT(worst, half * 0.9);
  }
}

TEST(FakeQuantise, PathsAreNamed) {
  EXPECT_EQ(parse_paths("off"), QuantisedPaths{});
  EXPECT_EQ(parse_paths("int8"), (QuantisedPaths{Width::f16, Width::f16, Width::i8}));
  const auto each = parse_paths("pooled=e4m3,vectors=int8");
  EXPECT_EQ(each, (QuantisedPaths{Width::i8, Width::off, Width::e4m3}));
  EXPECT_EQ(parse_paths(to_string(each)), each);
  for (const char* wrong : {"int4", "pooled=", "cache=int8", "pooled=int8,,vectors=f16", "="})
    EXPECT_THROW(parse_paths(wrong), std::exception) << wrong;
}

// A tensor whose every element lies beyond its quantiser's range passes no gradient: with all
// pooled values equal but a few, the scale's quantile leaves those few outside.
TEST(StraightThrough, GradientsPassUnchangedInsideAndNotAtAllWhereClipped) {
  PlantedOptions data;
  data.sequences = 2, data.tokens = 64, data.features = 8, data.head_dim = 16, data.heads = 2,
  data.queries = 3;
  const auto sequences = planted_sequences(data, 0);
  const Geometry geometry = geometry_of(data);
  const auto gradient_with = [&](const char* paths) {
    ObjectiveOptions options;
    options.paths = parse_paths(paths);
    const Objective objective = prepare("kpool", geometry, sequences, options);
    return gradient(objective, initial_parameters("kpool", geometry, sequences), {1, 1});
  };
  const auto norm_of = [](const Arrays<double>& a, const Arrays<double>& b) {
    double square = 0;
    for (const auto& [name, values] : a)
      for (std::size_t i = 0; i < values.size(); ++i)
        square += std::pow(values[i] - b.at(name)[i], 2);
    return std::sqrt(square);
  };
  const Gradient exact = gradient_with("off"), fine = gradient_with("f16"),
                 coarse = gradient_with("e4m3");
  const Arrays<double> zero = [&] {
    Arrays<double> all = exact.parameters;
    for (auto& [name, values] : all) values.assign(values.size(), 0);
    return all;
  }();
  const double norm = norm_of(exact.parameters, zero);
  EXPECT_EQ(exact.clipped_values, 0);
  EXPECT_LT(norm_of(exact.parameters, fine.parameters), 1e-3 * norm);
  EXPECT_LT(norm_of(exact.parameters, coarse.parameters), 0.3 * norm);
  EXPECT_GT(norm_of(exact.parameters, coarse.parameters), 1e-3 * norm);
  EXPECT_GT(coarse.clipped_values, 0);
  EXPECT_LT(coarse.clipped_values, 10);
}

}  // namespace
}  // namespace indexpool::reference::training
