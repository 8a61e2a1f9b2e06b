// Training runs: the objective falls, the weights learn the plant, the same seed gives the same
// bytes.
#include <cmath>

#include <gtest/gtest.h>

#include "indexpool/reference/training/train.hpp"

namespace indexpool::reference::training {
namespace {

TrainOptions quick(const std::string& policy, std::int64_t epochs = 6) {
  TrainOptions options;
  options.policy = policy;
  options.epochs = epochs;
  options.data.sequences = 12;
  options.data.tokens = 128;
  options.held_out = 8;
  return options;
}

bool same(const Training& a, const Training& b) {
  if (a.parameters != b.parameters || a.epochs.size() != b.epochs.size()) return false;
  for (std::size_t i = 0; i < a.epochs.size(); ++i) {
    const Epoch &x = a.epochs[i], &y = b.epochs[i];
    if (x.objective != y.objective || x.held_out.recall.low != y.held_out.recall.low) return false;
  }
  return true;
}

TEST(TrainingRun, KpoolsObjectiveFallsEveryEpochAndBeatsTheMeanOnHeldOutData) {
  const Training run = train({});
  ASSERT_EQ(run.epochs.size(), 31u);
  for (std::size_t i = 1; i < run.epochs.size(); ++i)
    EXPECT_LT(run.epochs[i].objective, run.epochs[i - 1].objective) << "epoch " << i;
  const Evaluation &before = run.epochs.front().held_out, &after = run.epochs.back().held_out;
  EXPECT_GT(after.recall.low, run.mean.recall.high);
  EXPECT_LT(after.loss, run.mean.loss);
  EXPECT_GT(after.mass, run.mean.mass);
  EXPECT_LT(after.entropy, 0.8);
  // Untrained it is a mean.
  EXPECT_NEAR(before.entropy, 1, 1e-12);
  EXPECT_EQ(before.recall.value, run.mean.recall.value);
}

TEST(TrainingRun, EveryPolicysObjectiveNeverRises) {
  for (const std::string& policy : trainable_policies()) {
    for (const char* paths : {"off", "int8"}) {
      TrainOptions options = quick(policy);
      options.objective.paths = parse_paths(paths);
      options.f16_updates = options.objective.dynamic_scaling = true;
      const Training run = train(options);
      for (std::size_t i = 1; i < run.epochs.size(); ++i)
        EXPECT_LE(run.epochs[i].objective, run.epochs[i - 1].objective) << policy << " " << i;
      EXPECT_LT(run.epochs.back().objective, run.epochs.front().objective) << policy << paths;
    }
  }
}

TEST(TrainingRun, TheSameSeedGivesTheSameBytes) {
  for (const std::string& policy : trainable_policies()) {
    TrainOptions options = quick(policy, 3);
    options.data.sequences = options.held_out = 4;
    options.objective.paths = parse_paths("int8");
    const Training once = train(options);
    EXPECT_TRUE(same(once, train(options))) << policy;
    options.data.seed = 2;
    EXPECT_FALSE(same(once, train(options))) << policy;
  }
}

TEST(TrainingRun, KpoolInTwoKernelsLearnsWhatKpoolLearns) {
  EXPECT_TRUE(same(train(quick("kpool_weights", 3)), train(quick("kpool", 3))));
}

// Of two tokens, two pools can become the tokens themselves; one pool of them cannot.
TEST(TrainingRun, TwoOutputsOfTwoTokensLearnToKeepOneEach) {
  TrainOptions options = quick("composite_half", 60);
  options.data.index_kpool = 2;
  const Training run = train(options);
  const std::vector<double>& logits = run.parameters.at("pool_matrix");
  EXPECT_GT(logits[0] - logits[1], std::log(9));  // more than 0.9 of one token
  EXPECT_GT(logits[3] - logits[2], std::log(9));
  options.policy = "composite";
  const Training one = train(options);
  EXPECT_GT(run.epochs.back().held_out.recall.low, one.epochs.back().held_out.recall.high);
  EXPECT_LT(run.epochs.back().held_out.loss, one.epochs.back().held_out.loss);
}

TEST(TrainingRun, TheFirstOfTwoStagesLeavesTheWeightsAsPublished) {
  TrainOptions options = quick("composite", 3);
  options.two_stage = true;
  std::vector<double> entropy;
  std::vector<int> stages;
  const Training run = train(options, [&](const Epoch& epoch) {
    entropy.push_back(epoch.held_out.entropy);
    stages.push_back(epoch.stage);
  });
  EXPECT_EQ(stages, (std::vector<int>{1, 1, 1, 2}));
  // Of 0.4, 0.3, 0.2, 0.1: 1.27985 nats over log 4.
  EXPECT_NEAR(entropy[0], 0.92320, 1e-4);
  EXPECT_EQ(entropy[1], entropy[0]);
  EXPECT_EQ(entropy[2], entropy[0]);
  EXPECT_NE(entropy[3], entropy[0]);
  EXPECT_LT(run.epochs[2].objective, run.epochs[0].objective);  // the logit scale was learnt
}

TEST(TrainingRun, UpdatesInF16LoseWhatIsBelowHalfTheSmallestNumber) {
  TrainOptions options = quick("kpool", 2);
  options.f16_updates = true;
  options.learning_rate = 1e-9;
  const Training run = train(options);
  EXPECT_EQ(run.epochs[1].step, 0);  // nothing moved at all
  EXPECT_EQ(run.epochs[1].objective, run.epochs[0].objective);
  options.f16_updates = false;
  EXPECT_LT(train(options).epochs[1].objective, run.epochs[0].objective);
}

TEST(TrainingRun, WrongOptionsAreNamed) {
  const auto refuses = [](const char* what, const auto& change) {
    TrainOptions options;
    change(options);
    try {
      validate(options);
      ADD_FAILURE() << what;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuses("epochs: found 0", [](TrainOptions& o) { o.epochs = 0; });
  refuses("ratio: found 1", [](TrainOptions& o) { o.data.index_kpool = 1; });
  refuses("ratio: found 3", [](TrainOptions& o) { o.data.index_kpool = 3; });
  refuses("recall k: found 64", [](TrainOptions& o) { o.recall_k = 64; });
  refuses("held-out", [](TrainOptions& o) { o.held_out = 1; });
  refuses("learning rate", [](TrainOptions& o) { o.learning_rate = 0; });
  refuses("temperature", [](TrainOptions& o) { o.objective.temperature = -1; });
  refuses("cannot be trained", [](TrainOptions& o) { o.policy = "last"; });
}

TEST(Bootstrap, CoversTheMeanOfKnownRowsAndNarrowsWithTheirNumber) {
  std::vector<std::vector<double>> few, many;
  for (int i = 0; i < 400; ++i) {
    const std::vector<double> row(4, i % 2 == 0 ? 0.0 : 1.0);
    if (i < 16) few.push_back(row);
    many.push_back(row);
  }
  const Interval wide = bootstrap(few, 1), narrow = bootstrap(many, 1);
  EXPECT_EQ(wide.value, 0.5);
  // Standard errors 0.125 and 0.025: the interval is about four of them wide.
  EXPECT_NEAR(wide.high - wide.low, 3.92 * 0.125, 0.1);
  EXPECT_NEAR(narrow.high - narrow.low, 3.92 * 0.025, 0.02);
  EXPECT_LT(narrow.low, 0.5);
  EXPECT_GT(narrow.high, 0.5);
}

}  // namespace
}  // namespace indexpool::reference::training
