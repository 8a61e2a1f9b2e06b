// What the data sets are, and what training makes of them.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/training/train.hpp"
#include "indexpool/verify/recall/kept.hpp"

#include "small_data.hpp"

namespace indexpool::verify::recall {
namespace {

const TensorFile& file() {
  static const TensorFile read =
      read_safetensors(INDEXPOOL_SOURCE_DIR "/verify/recall/smollm2.safetensors");
  return read;
}

TEST(Activations, TheFileIsWhatItsScriptSays) {
  for (const std::string& layer : layers()) {
    file().require(layer + ".keys", DType::f16, {2048, 64});
    file().require(layer + ".queries", DType::f16, {128, 3, 64});
  }
  file().require("layer14.hidden_states", DType::f16, {2048, 576});
  const Tensor& positions = file().require("query_positions", DType::i64, {128});
  for (std::int64_t i = 0; i < 128; ++i) EXPECT_EQ(positions.at(i), 1031 + 8 * i);
  EXPECT_NE(file().metadata.at("model").find("SmolLM2-135M-Instruct"), std::string::npos);
  EXPECT_NE(file().metadata.at("model").find("Apache-2.0"), std::string::npos);
  EXPECT_NE(file().metadata.at("text").find("GNU GPL version 3"), std::string::npos);
  // A model that reads this text loses about 3 nats a token; a broken one about log(49152) = 10.8.
  EXPECT_LT(std::stod(file().metadata.at("loss_nats")), 3.5);
}

TEST(Activations, LearntFromAndHeldOutQueriesAreBlocksByTurns) {
  const DataSet data = activations(file(), "layer6");
  const Tensor& queries = file().require("layer6.queries");
  ASSERT_EQ(data.learnt_from[0].queries.size(), 192u * 64);
  ASSERT_EQ(data.held_out[0].queries.size(), 192u * 64);
  for (const std::int64_t position : {0, 15, 16, 31, 32, 127}) {
    const auto& side = position / 16 % 2 == 0 ? data.learnt_from[0] : data.held_out[0];
    const std::int64_t place = position / 32 * 16 + position % 16;
    EXPECT_EQ(side.queries[static_cast<std::size_t>(place * 192)], queries.at(position * 192));
  }
  EXPECT_EQ(data.learnt_from[0].keys, data.held_out[0].keys);
  EXPECT_EQ(data.geometry.features, 64);
  EXPECT_EQ(activations(file(), "layer14").geometry.features, 576);
}

TEST(Activations, NoneOfTheBestTokensIsDecidedByTies) {
  for (const std::string& layer : layers()) {
    const DataSet data = activations(file(), layer);
    const Unpooled of = unpooled(data, data.held_out[0], data.k);
    EXPECT_EQ(of.ties, 0) << layer;
    double sum = 0;
    for (const double share : of.attention) sum += share;
    EXPECT_NEAR(sum, 192, 1e-9);
  }
}

TEST(Activations, AMissingLayerIsNamed) {
  try {
    activations(file(), "layer7");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("layer7.keys"), std::string::npos) << error.what();
  }
}

TEST(Accesses, AreSharesOfTheirGroupTimesTheRarityOfItsToken) {
  DataSet data = small_data(1);
  data.accesses.assign(32, 0);
  data.accesses[4] = 1;
  data.accesses[6] = 3;
  const auto terms = grouped(data, {data.held_out[0]}, 4)[0].access_terms;
  const double idf = std::log(9.0 / 2) + 1;  // 8 groups
  EXPECT_NEAR(terms[4], idf / 4, 1e-15);
  EXPECT_NEAR(terms[6], idf * 3 / 4, 1e-15);
  EXPECT_EQ(terms[5], 0);
  EXPECT_EQ(terms[0], 0);  // a group that nobody asked for
}

TEST(Planted, TrainedKpoolAndGateFindMoreThanTheMean) {
  CompareOptions options;
  options.ratios = {4};
  options.epochs = 15;
  options.policies = {"kpool", "gated"};
  const auto rows = compare(planted_data({1, 16, 48}), options);
  const Row& mean = row_of(rows, "mean", Form::fixed);
  for (const char* policy : {"kpool", "gated"}) {
    const Row& trained = row_of(rows, policy, Form::trained);
    EXPECT_GT(trained.recall.low, mean.recall.high) << policy;
    EXPECT_GT(trained.mass.low, mean.mass.high) << policy;
    EXPECT_GT(trained.over_mean.low, 0) << policy;
    // As they start, both are a mean.
    EXPECT_EQ(row_of(rows, policy, Form::untrained).recall.value, mean.recall.value) << policy;
  }
}

// The same machine finds nothing where there is nothing, so what it finds above was planted.
TEST(Unstructured, NothingLearntFindsMoreThanTheMean) {
  CompareOptions options;
  options.ratios = {4};
  options.epochs = 15;
  for (const std::uint64_t seed : {1, 2}) {
    const auto rows = compare(unstructured_data({seed, 16, 48}), options);
    const Row& mean = row_of(rows, "mean", Form::fixed);
    for (const Row& row : rows) {
      if (row.form != Form::trained && row.form != Form::untrained) continue;
      EXPECT_LE(row.recall.low, mean.recall.high) << row.policy << " seed " << seed;
    }
  }
}

// Attention has no relu: the objective's gradient there against central differences.
TEST(AttentionObjective, ItsGradientAgreesWithDifferences) {
  using namespace reference::training;
  const DataSet data = small_data(5);
  Geometry geometry = data.geometry;
  geometry.index_kpool = 4;
  ObjectiveOptions options;
  options.relu = options.clip_weight_gradients = false;
  for (const char* policy : {"kpool", "composite", "gated"}) {
    const Objective objective = prepare(policy, geometry, data.learnt_from, options);
    Arrays<double> at = initial_parameters(policy, geometry, data.learnt_from);
    for (auto& [name, values] : at)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += 0.3 * Random(9, i).normal(static_cast<std::int64_t>(name.size()));
    const Arrays<double> found = gradient(objective, at, {}).parameters;
    for (const auto& [name, values] : found) {
      double& x = at[name][values.size() / 2];
      const double middle = x, step = 1e-5;
      x = middle + step;
      const double above = loss(objective, at);
      x = middle - step;
      const double below = loss(objective, at);
      x = middle;
      EXPECT_NEAR(values[values.size() / 2], (above - below) / (2 * step), 1e-8) << policy << name;
    }
  }
}

TEST(AttentionObjective, OfOneHeadIsTheDivergenceFromItsOwnAttention) {
  using namespace reference::training;
  DataSet data = small_data(6);
  data.geometry.heads = 1;
  data.relu = false;
  auto& sequence = data.held_out[0];
  sequence.queries.resize(4 * 6);
  sequence.head_weights.assign(4, 1);
  ObjectiveOptions options;
  options.relu = false;
  Geometry geometry = data.geometry;
  geometry.index_kpool = 4;
  const auto prepared = prepare("mean", geometry, {sequence}, options);
  const Unpooled of = unpooled(data, sequence, 4);
  for (std::size_t g = 0; g < 4u * 8; ++g) {
    double share = 0;
    for (std::size_t i = 0; i < 4; ++i) share += of.attention[g * 4 + i];
    EXPECT_NEAR(prepared.sequences[0].group_share[g], share, 1e-14);
  }
}

}  // namespace
}  // namespace indexpool::verify::recall
