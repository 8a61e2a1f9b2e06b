// The objective, its gradients, and the data it is taken on.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "indexpool/reference/training/objective.hpp"

namespace indexpool::reference::training {
namespace {

PlantedOptions small(std::uint64_t seed = 3) {
  PlantedOptions data;
  data.seed = seed;
  data.sequences = 2, data.tokens = 32, data.features = 6, data.head_dim = 8, data.heads = 2,
  data.queries = 3;
  return data;
}

// Somewhere away from the start, where weights differ.
Arrays<double> shaken(Arrays<double> parameters) {
  int k = 0;
  for (auto& [name, values] : parameters)
    for (double& x : values) x += 0.2 * std::sin(7.3 * ++k);
  project(parameters);
  return parameters;
}

Objective objective_of(const std::string& policy, const ObjectiveOptions& options,
                       const PlantedOptions& data = small()) {
  return prepare(policy, geometry_of(data), planted_sequences(data, 0), options);
}
Arrays<double> start_of(const std::string& policy, const PlantedOptions& data = small()) {
  return initial_parameters(policy, geometry_of(data), planted_sequences(data, 0));
}

// Largest difference between the gradient and central differences, over the largest gradient.
double gradient_error(const Objective& objective, const Arrays<double>& at,
                      const Arrays<double>& found) {
  constexpr double h = 1e-5;  // truncation and rounding both about 1e-10
  double worst = 0, largest = 0;
  for (const auto& [name, values] : found) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Arrays<double> above = at, below = at;
      above[name][i] += h;
      below[name][i] -= h;
      const double expected = (loss(objective, above) - loss(objective, below)) / (2 * h);
      worst = std::max(worst, std::abs(values[i] - expected));
      largest = std::max(largest, std::abs(expected));
    }
  }
  return worst / largest;
}

TEST(Objective, GradientsAgreeWithDifferencesForEveryPolicyThatIsTrained) {
  ObjectiveOptions options;
  options.clip_weight_gradients = false;
  for (const std::string& policy : trainable_policies()) {
    for (const bool dynamic : {false, true}) {
      options.dynamic_scaling = dynamic;
      const Objective objective = objective_of(policy, options);
      const Arrays<double> at = shaken(start_of(policy));
      const Arrays<double> found = gradient(objective, at, {}).parameters;
      EXPECT_LT(gradient_error(objective, at, found), 1e-7) << policy << " " << dynamic;
      for (const auto& [name, values] : found) {
        Arrays<double> wrong = found;
        for (double& x : wrong[name]) x = -x;
        EXPECT_GT(gradient_error(objective, at, wrong), 1e-5) << policy << " " << name;
      }
    }
  }
}

TEST(Objective, IsZeroWhenAllTokensOfAGroupAreOneToken) {
  const PlantedOptions data = small();
  auto sequences = planted_sequences(data, 0);
  const auto dim = static_cast<std::size_t>(data.head_dim);
  for (Sequence& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.keys.size(); ++i)
      sequence.keys[i] = sequence.keys[i / dim / 4 * 4 * dim + i % dim];
  }
  const Objective objective = prepare("mean", geometry_of(data), sequences, {});
  EXPECT_NEAR(loss(objective, start_of("mean")), 0, 1e-12);
  EXPECT_GT(loss(objective_of("mean", {}), start_of("mean")), 0.01);
}

TEST(Objective, EqualWeightsAreTheMeansLoss) {
  const double mean = loss(objective_of("mean", {}), start_of("mean"));
  for (const char* policy : {"kpool", "gated"})
    EXPECT_NEAR(loss(objective_of(policy, {}), start_of(policy)), mean, 1e-12) << policy;
  EXPECT_GT(std::abs(loss(objective_of("composite", {}), start_of("composite")) - mean), 1e-4);
}

TEST(DynamicScaling, ChangesNothingWhereWeightsDoNotSeeTheVectorsLength) {
  ObjectiveOptions scaled;
  scaled.dynamic_scaling = true;
  for (const char* policy : {"kpool", "composite", "additive", "tfidf"}) {
    const Arrays<double> at = shaken(start_of(policy));
    const double plain = loss(objective_of(policy, {}), at);
    EXPECT_NEAR(loss(objective_of(policy, scaled), at), plain, 1e-12) << policy;
  }
}

TEST(DynamicScaling, MakesAGateBlindToTheScaleOfItsVectors) {
  const PlantedOptions data = small();
  const Arrays<double> at = shaken(start_of("gated"));
  const auto pooled = [&](double scale, bool dynamic) {
    auto sequences = planted_sequences(data, 0);
    for (double& x : sequences[0].keys) x *= scale;
    ObjectiveOptions options;
    options.dynamic_scaling = dynamic;
    const Objective objective = prepare("gated", geometry_of(data), sequences, options);
    return forward(objective, objective.sequences[0], at).pooled;
  };
  double with = 0, without = 0;
  const auto one = pooled(1, true), eight = pooled(8, true), raw = pooled(1, false),
             raw_eight = pooled(8, false);
  for (std::size_t i = 0; i < one.size(); ++i) {
    with = std::max(with, std::abs(eight[i] - 8 * one[i]));
    without = std::max(without, std::abs(raw_eight[i] - 8 * raw[i]));
  }
  EXPECT_LT(with, 1e-12);
  EXPECT_GT(without, 0.1);
}

TEST(PlantedData, IsAFunctionOfSeedAndNumberOfASequence) {
  PlantedOptions two = small(), one = small();
  one.sequences = 1;
  const auto pair = planted_sequences(two, 0);
  EXPECT_EQ(planted_sequences(one, 1)[0].keys, pair[1].keys);
  EXPECT_NE(pair[0].keys, pair[1].keys);
  EXPECT_NE(planted_sequences(small(4), 0)[0].keys, pair[0].keys);
}

TEST(PlantedData, QueriesPreferTheSalientTokens) {
  PlantedOptions data;
  data.sequences = 16;
  const Objective objective = prepare("mean", geometry_of(data), planted_sequences(data, 0), {});
  std::int64_t salient = 0, all = 0;
  std::map<std::int64_t, std::int64_t> places;
  for (const Prepared& of : objective.sequences) {
    for (const std::int64_t place : of.sequence.salient) ++places[place];
    for (std::int64_t q = 0; q < data.queries; ++q, ++all) {
      const auto* row = of.token_scores.data() + q * data.tokens;
      const std::int64_t best = std::max_element(row, row + data.tokens) - row;
      salient += of.sequence.salient[static_cast<std::size_t>(best / 4)] == best % 4;
    }
  }
  EXPECT_GT(salient, all / 2);   // one token in four is
  EXPECT_EQ(places.size(), 4u);  // no place in the group is theirs
  for (const auto& [place, count] : places) EXPECT_NEAR(static_cast<double>(count), 256, 64);
}

TEST(Training, PoliciesThatCannotBeTrainedAreNamed) {
  for (const char* name : {"block_max", "plain", "kpol"}) {
    EXPECT_THROW(require_trainable(name), std::exception) << name;
  }
}

}  // namespace
}  // namespace indexpool::reference::training
