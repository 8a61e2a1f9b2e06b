// What predict says of whole steps.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

using nlohmann::json;

json rows_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"predict", "--only", "time"});
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = indexpool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out) : json::array();
}

bool is_whole(const json& row) { return row["what"].get<std::string>().starts_with("whole step"); }

double whole_step(const std::vector<std::string>& arguments, const char* column = "time_s") {
  for (const json& row : rows_of(arguments)) {
    if (is_whole(row)) return row[column];
  }
  ADD_FAILURE() << "no whole step";
  return 0;
}

TEST(PredictStep, TimeLowAndHighAreTheSumsOfTheirColumns) {
  for (const char* phase : {"decode", "prefill"}) {
    double time = 0, low = 0, high = 0, share = 0, bytes = 0;
    for (const json& row : rows_of({"--phase", phase, "--device", "h200-sxm", "--gpus", "8"})) {
      if (row["phase"].get<std::string>().starts_with("prompt")) continue;
      if (is_whole(row)) {
        EXPECT_NEAR(row["time_s"].get<double>(), time, 1e-9 * time);
        EXPECT_NEAR(row["time_low_s"].get<double>(), low, 1e-9 * low);
        EXPECT_NEAR(row["time_high_s"].get<double>(), high, 1e-9 * high);
        EXPECT_NEAR(row["bytes"].get<double>(), bytes, 1e-6 * bytes);
        EXPECT_NEAR(share, 1, 1e-9);
        continue;
      }
      time += row["time_s"].get<double>();
      low += row["time_low_s"].get<double>();
      high += row["time_high_s"].get<double>();
      share += row["share_of_step"].get<double>();
      if (!row["bytes"].is_null()) bytes += row["bytes"].get<double>();
    }
  }
}

TEST(PredictStep, EveryModelOnEveryDeviceHasAStep) {
  const auto names = [](const char* kind) {
    std::vector<std::string> out;
    for (const json& row : json::parse(indexpool({"list", kind, "--format", "json"}).out)) {
      out.push_back(row["name"]);
    }
    return out;
  };
  for (const std::string& model : names("models")) {
    EXPECT_GT(whole_step({"--model", model}), 0) << model;
  }
  for (const std::string& device : names("devices")) {
    EXPECT_GT(whole_step({"--device", device, "--gpus", "8", "--batch", "4"}), 0) << device;
  }
}

TEST(PredictStep, ExplainNamesFormulaSourceAndKindOfEveryTerm) {
  const std::vector<std::string> arguments = {"--phase", "decode", "--gpus",   "2",
                                              "--batch", "8",      "--explain"};
  std::set<std::string> kinds, operations;
  double sum = 0, hidden = 0, whole = 0;
  for (const json& row : rows_of(arguments)) {
    if (row["kind"] == "operation") {
      operations.insert(row["what"]);
      EXPECT_FALSE(row["formula"].get<std::string>().empty()) << row;
      sum += row["runs"].get<double>() * row["time_s"].get<double>();
    } else if (row["kind"] == "term") {
      EXPECT_FALSE(row["source"].get<std::string>().empty()) << row;
      EXPECT_FALSE(row["constants"].get<std::string>().empty()) << row;
      kinds.insert(row["constants"]);
    } else if (is_whole(row)) {
      whole = row["time_s"];
    } else if (row["what"] == "hidden by a second stream") {
      hidden = row["time_s"];
    }
  }
  EXPECT_NEAR(sum + hidden, whole, 1e-9 * whole);
  for (const char* operation :
       {"linear attention: delta rule", "attention: q_b_proj", "indexer: logits", "indexer: topk",
        "sparse attention: sparse attention", "routed experts: experts.down_proj",
        "collectives: all-reduce after attention", "embedding and head: lm_head"}) {
    EXPECT_TRUE(operations.contains(operation)) << operation;
  }
  const auto some = [&](const char* kind) {
    return std::any_of(kinds.begin(), kinds.end(),
                       [&](const std::string& each) { return contains(each, kind); });
  };
  EXPECT_TRUE(some("published") && some("assumed") && some("fitted"));
}

TEST(PredictStep, OptionsReachTheStep) {
  const std::vector<std::string> base = {"--device", "h200-sxm", "--phase", "decode"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return whole_step(more);
  };
  const double plain = with({});
  EXPECT_GT(with({"--batch", "32"}), plain);
  EXPECT_GT(with({"--launch", "stream"}), plain);
  EXPECT_GT(with({"--one-stream"}), plain);
  EXPECT_GT(with({"--drafts", "2"}), plain);
  EXPECT_GT(with({"--unpooled"}), plain);
  EXPECT_LT(with({"--gpus", "8"}), plain);
  EXPECT_LT(with({"--parameters", "fp8"}), plain);
  EXPECT_LT(with({"--tp", "2", "--cp", "4", "--tokens", "10M"}),
            with({"--tp", "2", "--tokens", "10M"}));
  EXPECT_NE(with({"--gpus", "8", "--batch", "32"}),
            with({"--gpus", "8", "--batch", "32", "--expert-parallel"}));
  EXPECT_GT(with({"--pp", "2"}), plain);
}

TEST(PredictStep, RatesAreTokensOverTime) {
  const std::vector<std::string> decode = {"--phase", "decode", "--batch", "16", "--drafts", "1"};
  EXPECT_NEAR(whole_step(decode, "tokens_per_s") * whole_step(decode), 16, 1e-6);
  const std::vector<std::string> prefill = {"--phase", "prefill", "--prefill-chunk", "2048"};
  EXPECT_NEAR(whole_step(prefill, "tokens_per_s") * whole_step(prefill), 2048, 1e-6);
}

TEST(PredictStep, KeysThatNoKernelReadsAreSaidAndLeftOut) {
  bool refused = false, whole = false;
  for (const json& row : rows_of({"--index", "mxfp4", "--phase", "decode"})) {
    const std::string limit = row["limited_by"].is_null() ? "" : row["limited_by"];
    refused |= contains(limit, "no kernel reads index keys stored as mxfp4");
    whole |= row["what"] == "whole step, without the indexer's kernels";
  }
  EXPECT_TRUE(refused && whole);
}

TEST(PredictStep, EveryFormatSaysTheSame) {
  const auto lines = [](const char* format) {
    const std::string said = indexpool({"predict", "--only", "time", "--phase", "decode",
                                        "--format", format, "--explain"})
                                 .out;
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
    return static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n'));
  };
  const std::size_t rows = rows_of({"--phase", "decode", "--explain"}).size();
  EXPECT_GT(rows, 100u);
  EXPECT_EQ(lines("csv"), rows + 1);
  EXPECT_EQ(lines("table"), rows + 5);  // two tables, a heading and a rule each, and a gap
  EXPECT_EQ(lines("md"), rows + 5);
}

TEST(PredictStep, ADeviceFileWithoutLinksPredictsOneGpuAndRefusesMore) {
  json device = json::parse(read_text(INDEXPOOL_SOURCE_DIR "/model/devices/h200-sxm.json"));
  device.erase("link_bytes_per_s");
  device.erase("link_latency_s");
  const Folder folder;
  const std::string path = folder.file("device.json");
  std::ofstream(path) << device;
  EXPECT_GT(whole_step({"--device", path}), 0);
  const Outcome outcome = indexpool({"predict", "--only", "time", "--device", path, "--gpus", "2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "/link_bytes_per_s")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

struct Refusal {
  std::vector<std::string> arguments;
  const char* said;
};

TEST(PredictStep, ImpossibleStepsEndWithExitCodeTwo) {
  const Refusal refusals[] = {
      {{"--phase", "decod"}, "did you mean decode"},
      {{"--launch", "grpah"}, "did you mean graph"},
      {{"--tp", "64", "--expert-parallel"}, "288 routed experts"},
      {{"--tokens", "1025G"}, "1099511627776"},
      {{"--prefill-chunk", "0"}, "--prefill-chunk"},
      {{"--drafts", "-1"}, "drafted tokens"},
      {{"--drafts", "65"}, "drafted tokens"},
      {{"--batch", "20000000"}, "--batch"},
      {{"--cp", "0"}, "--cp"},
      {{"--phse", "decode"}, "did you mean --phase"},
  };
  for (const Refusal& refusal : refusals) {
    std::vector<std::string> arguments = refusal.arguments;
    arguments.insert(arguments.begin(), "predict");
    const Outcome outcome = indexpool(arguments);
    EXPECT_EQ(outcome.code, 2) << refusal.said << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << refusal.said;
    EXPECT_TRUE(contains(outcome.err, refusal.said)) << refusal.said << ": " << outcome.err;
  }
}

TEST(PredictStep, AbsurdBatchesHaveMemoryAndNoTime) {
  const Outcome outcome = indexpool({"predict", "--batch", "16000000", "--tokens", "1K"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "no times of steps beyond 1048576 rows")) << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
