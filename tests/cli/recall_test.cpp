// indexpool recall, as a user runs it.
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

std::vector<std::string> quick(std::vector<std::string> more) {
  std::vector<std::string> line = {"recall",   "--data",          "planted",  "--ratio", "4",
                                   "--policy", "kpool,block_max", "--epochs", "2"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

TEST(RecallCommand, RanksPoliciesAndSaysWhoLeads) {
  const Outcome outcome = indexpool(quick({}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"oracle", "kpool", "trained", "untrained", "over mean",
                           "planted, 4:1: most of the 16 best in 16 tokens"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(RecallCommand, JsonAndCsvHoldEveryNumberInAColumnOfItsOwn) {
  const Outcome json = indexpool(quick({"--format", "json"}));
  ASSERT_EQ(json.code, 0) << json.err;
  const auto rows = nlohmann::json::parse(json.out);
  ASSERT_EQ(rows.size(), 5u);  // oracle, block_max, mean, kpool twice
  EXPECT_EQ(rows[0]["policy"], "oracle");
  EXPECT_EQ(rows[0]["recall"], 1.0);
  EXPECT_TRUE(rows[0]["rank"].is_null());
  for (const auto& row : rows) {
    EXPECT_LE(row["recall_low"], row["recall"]);
    EXPECT_LE(row["recall"], row["recall_high"]);
    EXPECT_EQ(row["selected_tokens"], 16);
  }
  const Outcome csv = indexpool(quick({"--format", "csv"}));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 6);
  EXPECT_TRUE(contains(csv.out, "data,ratio,rank,policy,how,k,selected_tokens,recall,recall_low"));
}

TEST(RecallCommand, WritesPageAndRecordsTheSameEveryTime) {
  const Folder first, second;
  const auto run = [](const Folder& folder) {
    return indexpool({"recall", "--data", "planted,layer6", "--ratio", "4,16", "--policy",
                      "composite,last", "--epochs", "2", "--mode", "int8", "--seed", "3", "--out",
                      folder.file("run")});
  };
  const Outcome outcome = run(first);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(run(second).code, 0);
  for (const char* name : {"recall.html", "recall.jsonl"})
    EXPECT_EQ(read_text(first.path() / "run" / name), read_text(second.path() / "run" / name));
  const auto records = read_records(first.path() / "run" / "recall.jsonl");
  ASSERT_EQ(records.size(), 2u * 2 * 5);
  for (const Record& record : records) {
    EXPECT_EQ(record.verdict.status, Status::passed) << record.verdict.reason;
    EXPECT_EQ(record.verdict.rows, record.case_name.starts_with("planted") ? 384 : 192);
    EXPECT_TRUE(record.values.contains("mass_low"));
  }
  EXPECT_EQ(records.back().repeat,
            "indexpool recall --data layer6 --ratio 4,16 --policy composite,last --seed 3 "
            "--epochs 2 --mode int8");
  const std::string html = read_text(first.path() / "run" / "recall.html");
  for (const char* part : {"<polyline", "SmolLM2", "95 % bootstrap over query positions",
                           "composite, trained", "How to repeat it"})
    EXPECT_TRUE(contains(html, part)) << part;
  for (const char* fetched : {"<script", "http://", "https://", "<img", "<link"})
    EXPECT_FALSE(contains(html, fetched)) << fetched;
}

TEST(RecallCommand, AllPoolsHoldAllTokens) {
  const Outcome all = indexpool({"recall", "--data", "planted", "--ratio", "16", "--policy", "last",
                                 "--pools", "16", "--format", "json"});
  ASSERT_EQ(all.code, 0) << all.err;
  for (const auto& row : nlohmann::json::parse(all.out)) EXPECT_EQ(row["recall"], 1.0);
}

TEST(RecallCommand, WrongInputIsNamedAndGivesExitCode2) {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Case cases[] = {
      {{"--data", "plantd"}, "planted"},
      {{"--policy", "kpol"}, "kpool"},
      {{"--policy", "kpool_weights"}, "ask for kpool"},
      {{"--ratio", "3"}, "ratio: found 3, expected a divisor"},
      {{"--ratio", "32"}, "ratio: found 32"},
      {{"--k", "129"}, "k: found 129, expected 1 to 128"},
      {{"--pools", "65", "--ratio", "4"}, "pools: found 65"},
      {{"--epochs", "0"}, "epochs: found 0"},
      {{"--mode", "int4"}, "int4"},
      {{"--format", "yaml"}, "yaml"},
      {{"--data", "layer6", "--activations", "/nowhere.safetensors"}, "/nowhere.safetensors"},
      {{"--data", "layer6", "--activations", golden("fp8_tiny")}, "layer6.keys"}};
  for (const Case& each : cases) {
    std::vector<std::string> line = {"recall"};
    line.insert(line.end(), each.arguments.begin(), each.arguments.end());
    const Outcome outcome = indexpool(line);
    EXPECT_EQ(outcome.code, 2) << each.says << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, each.says)) << each.says << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace indexpool::cli
