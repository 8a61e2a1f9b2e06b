// indexpool train, as a user runs it.
#include <algorithm>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/policy.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/safetensors.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

// A run of about a second.
std::vector<std::string> quick(std::vector<std::string> more) {
  std::vector<std::string> line = {"train", "--epochs", "3", "--sequences", "8", "--held-out", "6"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

TEST(TrainCommand, PrintsEveryEpochAndHowItComparesWithMeanPooling) {
  const Outcome outcome = indexpool(quick({}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"objective", "recall@8", "entropy", "kpool: recall@8", "mean pooling",
                           "on 6 held-out sequences", "after 3 epochs"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(TrainCommand, JsonAndCsvHoldTheSameNumbersAndTheObjectiveFalls) {
  const Outcome json = indexpool(quick({"--policy", "gated", "--format", "json"}));
  ASSERT_EQ(json.code, 0) << json.err;
  const auto rows = nlohmann::json::parse(json.out);
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_LT(rows[i]["objective_nats"], rows[i - 1]["objective_nats"]);
  EXPECT_NEAR(rows[0]["entropy"].get<double>(), 1, 1e-12);
  const Outcome csv = indexpool(quick({"--policy", "gated", "--format", "csv"}));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 5);
  EXPECT_TRUE(contains(csv.out, "epoch,stage,objective_nats"));
}

TEST(TrainCommand, WritesPageParametersCurvesAndRecordTheSameEveryTime) {
  const Folder first, second;
  const auto run = [](const Folder& folder) {
    return indexpool(quick({"--qat", "int8", "--two-stage", "--out", folder.file("run")}));
  };
  const Outcome outcome = run(first);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(run(second).code, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(first.path() / "run"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"epochs.csv", "parameters.safetensors",
                                             "records.jsonl", "train.html"}));
  for (const std::string& name : names)
    EXPECT_EQ(read_text(first.path() / "run" / name), read_text(second.path() / "run" / name));

  const TensorFile file = read_safetensors(first.path() / "run" / "parameters.safetensors");
  EXPECT_EQ(file.require("gate_projection", DType::f64, {32, 32}).dim(0), 32);
  EXPECT_EQ(file.require("position_bias", DType::f64, {4, 32}).dim(0), 4);
  EXPECT_EQ(file.metadata.at("policy"), "kpool");
  const auto records = read_records(first.path() / "run" / "records.jsonl");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].verdict.status, Status::passed);
  EXPECT_LT(records[0].values.at("objective_last_nats"),
            records[0].values.at("objective_first_nats"));
  EXPECT_TRUE(contains(records[0].repeat, "--qat int8 --two-stage"));
  const std::string html = read_text(first.path() / "run" / "train.html");
  for (const char* part : {"Training kpool pooling, 4:1", "<polyline", "95 % intervals",
                           "gate_projection", "pooled=int8", "indexpool train --policy kpool"})
    EXPECT_TRUE(contains(html, part)) << part;
  for (const char* fetched : {"<script", "http://", "https://", "<img", "<link"})
    EXPECT_FALSE(contains(html, fetched)) << fetched;
}

TEST(TrainCommand, TheLineInTheRecordRepeatsTheRun) {
  const Folder folder;
  const Outcome outcome =
      indexpool(quick({"--policy", "tfidf", "--ratio", "8", "--recall-k", "5", "--seed", "9",
                       "--f16-updates", "--dynamic-scaling", "--out", folder.file("run")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string repeat = read_records(folder.path() / "run" / "records.jsonl")[0].repeat;
  EXPECT_EQ(repeat,
            "indexpool train --policy tfidf --epochs 3 --seed 9 --ratio 8 --recall-k 5 "
            "--sequences 8 --held-out 6 --f16-updates --dynamic-scaling");
}

TEST(TrainCommand, HelpNamesEveryPolicyThatCanBeTrainedAndEachOfThemTrains) {
  const Outcome help = indexpool({"train", "--help"});
  ASSERT_EQ(help.code, 0) << help.err;
  for (const PolicyInfo& policy : policies()) {
    const std::string name(policy.name);
    const Outcome outcome = indexpool(
        {"train", "--policy", name, "--epochs", "1", "--sequences", "2", "--held-out", "2"});
    EXPECT_EQ(outcome.code, policy.learnable || name == "mean" ? 0 : 2) << name << outcome.err;
    const std::string words = std::regex_replace(help.out, std::regex("[^a-z0-9_]+"), " ");
    EXPECT_EQ(contains(words, " " + name + " "), outcome.code == 0) << name << help.out;
  }
}

TEST(TrainCommand, TwoPoolsOfAGroupAreSaidToBeTwo) {
  const Folder folder;
  const Outcome outcome =
      indexpool(quick({"--policy", "composite_half", "--out", folder.file("run")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "composite_half keeps 2 pools of every group")) << outcome.out;
  const std::string html = read_text(folder.path() / "run" / "train.html");
  EXPECT_TRUE(contains(html, "Training composite_half pooling, 4:2"));
  const TensorFile file = read_safetensors(folder.path() / "run" / "parameters.safetensors");
  EXPECT_EQ(file.require("pool_matrix", DType::f64, {2, 4}).dim(0), 2);
  EXPECT_FALSE(contains(indexpool(quick({"--policy", "composite"})).out, "pools of every group"));
}

TEST(TrainCommand, NothingToLearnIsUntrusted) {
  const Outcome outcome = indexpool(quick({"--f16-updates", "--learning-rate", "1e-12"}));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(contains(outcome.err, "nothing was learnt")) << outcome.err;
}

TEST(TrainCommand, WrongInputIsNamedAndGivesExitCode2) {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Folder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  const Case cases[] = {
      {{"--policy", "kpol"}, "kpool"},
      {{"--policy", "composit_half"}, "composite_half"},
      {{"--policy", "block_max"}, "cannot be trained: it keeps the largest score"},
      {{"--policy", "plain_raw"}, "cannot be trained: its weights are given"},
      {{"--epochs", "0"}, "epochs: found 0"},
      {{"--ratio", "3"}, "ratio: found 3, expected a divisor"},
      {{"--ratio", "32"}, "ratio: found 32"},
      {{"--recall-k", "64"}, "recall k: found 64"},
      {{"--learning-rate", "-1"}, "learning rate: found -1"},
      {{"--qat", "int4"}, "found width \"int4\""},
      {{"--format", "yaml"}, "yaml"}};
  for (const Case& each : cases) {
    std::vector<std::string> line = {"train"};
    line.insert(line.end(), each.arguments.begin(), each.arguments.end());
    const Outcome outcome = indexpool(line);
    EXPECT_EQ(outcome.code, 2) << each.says;
    EXPECT_TRUE(contains(outcome.err, each.says)) << each.says << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome blocked = indexpool({"train", "--out", folder.file("file")});
  EXPECT_EQ(blocked.code, 3) << blocked.err;
}

}  // namespace
}  // namespace indexpool::cli
