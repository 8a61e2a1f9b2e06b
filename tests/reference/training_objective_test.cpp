// The objective, its gradients, and the data it is taken on.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
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

// Two outputs at two to one can keep the two vectors themselves: nothing is lost.
TEST(Objective, IsZeroWhereEveryTokenHasAPoolOfItsOwn) {
  PlantedOptions data = small();
  data.index_kpool = 2;
  const Objective objective = objective_of("composite_half", {}, data);
  Arrays<double> at = start_of("composite_half", data);
  EXPECT_GT(loss(objective, at), 0.01);
  at["pool_matrix"] = {0, -1000, -1000, 0};
  EXPECT_NEAR(loss(objective, at), 0, 1e-12);
  at["pool_matrix"] = {0, -1000, 0, -1000};  // one token twice, the other lost
  EXPECT_GT(loss(objective, at), 0.01);
}

TEST(Objective, OutputsThatAreAlikeAreOneOutput) {
  const Objective one = objective_of("composite", {}), two = objective_of("composite_half", {});
  Arrays<double> at = shaken(start_of("composite"));
  const double of_one = loss(one, at);
  const Arrays<double> gradient_of_one = gradient(one, at, {}).parameters;
  std::vector<double>& matrix = at["pool_matrix"];
  const std::vector<double> row = matrix;
  matrix.insert(matrix.end(), row.begin(), row.end());
  EXPECT_NEAR(loss(two, at), of_one, 1e-12);
  const Arrays<double> found = gradient(two, at, {}).parameters;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double half = gradient_of_one.at("pool_matrix")[i] / 2;
    EXPECT_NEAR(found.at("pool_matrix")[i], half, 1e-12);
    EXPECT_NEAR(found.at("pool_matrix")[i + row.size()], half, 1e-12);
  }
  EXPECT_NEAR(found.at("logit_scale")[0], gradient_of_one.at("logit_scale")[0], 1e-12);
}

TEST(Objective, EqualWeightsAreTheMeansLoss) {
  const double mean = loss(objective_of("mean", {}), start_of("mean"));
  for (const char* policy : {"kpool", "kpool_weights", "gated"})
    EXPECT_NEAR(loss(objective_of(policy, {}), start_of(policy)), mean, 1e-12) << policy;
  EXPECT_GT(std::abs(loss(objective_of("composite", {}), start_of("composite")) - mean), 1e-4);
}

TEST(DynamicScaling, ChangesNothingWhereWeightsDoNotSeeTheVectorsLength) {
  ObjectiveOptions scaled;
  scaled.dynamic_scaling = true;
  for (const char* policy : {"kpool", "composite", "composite_half", "additive", "tfidf"}) {
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

TEST(Training, ContainsEveryLearnablePolicyOfTheTableAndTheMean) {
  std::vector<std::string> expected = {"mean"};
  for (const PolicyInfo& policy : policies())
    if (policy.learnable) expected.emplace_back(policy.name);
  std::vector<std::string> found = trainable_policies();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  for (const std::string& name : found) EXPECT_NO_THROW(require_trainable(name)) << name;
}

TEST(Training, StartsWithParametersOfTheirDeclaredShapes) {
  for (const std::string& policy : trainable_policies()) {
    for (const auto& [name, values] : start_of(policy)) {
      const Shape shape = parameter_shape(name, policy, geometry_of(small()));
      EXPECT_EQ(element_count(shape), std::ssize(values)) << policy << " " << name;
    }
  }
}

// Outputs that start alike would stay alike.
TEST(Training, StartsOutputsOfAGroupApart) {
  const std::vector<double> logits = start_of("composite_half").at("pool_matrix");
  ASSERT_EQ(logits.size(), 8u);
  const double tenths[] = {4, 3, 2, 1, 2, 1, 4, 3};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(std::exp(logits[i]), tenths[i], 1e-12) << i;
}

std::string refusal(const std::string& policy) {
  try {
    require_trainable(policy);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Training, APolicyThatCannotBeTrainedIsNamedWithTheReason) {
  for (const PolicyInfo& policy : policies()) {
    if (policy.learnable || policy.name == "mean") continue;
    const std::string text = refusal(std::string(policy.name));
    const bool given = policy.rule == WeightRule::given;
    ASSERT_TRUE(given || policy.rule == WeightRule::maximum) << policy.name;
    const std::string reason = given ? "its weights are given" : "has no weights";
    EXPECT_NE(text.find("cannot be trained: "), std::string::npos) << policy.name << text;
    EXPECT_NE(text.find(reason), std::string::npos) << policy.name << text;
  }
}

TEST(Training, AnUnknownPolicyHasNearNamesAndAllThatCanBeTrained) {
  const std::string text = refusal("composit_half");
  EXPECT_NE(text.find("did you mean \"composite_half\""), std::string::npos) << text;
  for (const std::string& name : trainable_policies())
    EXPECT_NE(text.find(name), std::string::npos) << name << ": " << text;
}

}  // namespace
}  // namespace indexpool::reference::training
