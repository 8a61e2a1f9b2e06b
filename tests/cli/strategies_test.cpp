// indexpool strategies, as a user runs it.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

// A run of about a second.
std::vector<std::string> quick(const std::string& names, std::vector<std::string> more = {}) {
  std::vector<std::string> line = {"strategies", "--strategy",  names, "--tokens",
                                   "128",        "--sequences", "3"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

TEST(StrategiesCommand, PrintsWhatEachSavesAndWhatItCosts) {
  const Outcome outcome = indexpool(quick("ratio,precision,adaptive"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"1/16, announced", "recent f16, old int8", "8:1, 4:1 or 2:1", "gained (lost)", "entropy",
        "over 85 %", "under 5 ms", "Recall@8", "3 planted sequences of 128 tokens"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "8-bit weights"));
  EXPECT_FALSE(contains(outcome.out, "a second stream adds"));
}

TEST(StrategiesCommand, JsonHoldsEveryNumberOfTheMonitor) {
  const Outcome outcome = indexpool(quick("incremental", {"--format", "json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 5u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["verdict"], "passed");
    EXPECT_EQ(row["checksum_failures"], 0);
    EXPECT_EQ(row["normalisation_violations"], 0);
    EXPECT_LT(row["pools"], row["without_pools"]);
    EXPECT_LE(row["staleness_over_bound"], 1);
    EXPECT_GT(row["weight_entropy"], 0);
    EXPECT_GT(row["predicted_pooling_s"], 0);
    EXPECT_LE(row["recall_gained_low"], row["recall_gained"]);
    EXPECT_LE(row["recall_gained"], row["recall_gained_high"]);
    EXPECT_LE(row["hit_rate"], 1);
  }
  // Nothing but the changed groups is pooled, and nothing is lost by that.
  EXPECT_EQ(rows[2]["case"], "incremental: tfidf, any change");
  EXPECT_EQ(rows[2]["recall_gained"], 0);
  EXPECT_EQ(rows[2]["hit_rate"], 1);
  EXPECT_EQ(rows[2]["staleness_over_bound"], 0);
}

TEST(StrategiesCommand, RatiosStoreWhatTheySay) {
  const Outcome outcome = indexpool(quick("ratio", {"--format", "json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i]["stored_bytes"].get<double>(), 3.0 * (128 >> (i + 1)) * 32 * 2);
  EXPECT_EQ(rows[1]["recall_gained"], 0);
}

TEST(StrategiesCommand, ASecondStreamIsPredictedWithAnInterval) {
  const Outcome outcome =
      indexpool(quick("asynchronous", {"--device", "h200-sxm", "--format", "json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    EXPECT_LE(row["two_streams_overhead"], row["one_stream_overhead"]);
    EXPECT_LE(row["two_streams_overhead_low"], row["two_streams_overhead"]);
    EXPECT_LE(row["two_streams_overhead"], row["two_streams_overhead_high"]);
    EXPECT_GT(row["one_stream_overhead"], 0);
    EXPECT_EQ(row["allowed_overhead"], 0.05);
  }
  EXPECT_TRUE(contains(indexpool(quick("asynchronous")).out, "a second stream adds"));
}

TEST(StrategiesCommand, WritesReportAndRecordsTheSameEveryTime) {
  const Folder first, second;
  for (const Folder* folder : {&first, &second}) {
    const Outcome outcome =
        indexpool(quick("edge,frequency", {"--seed", "7", "--out", folder->file("run")}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  for (const char* name : {"strategies.jsonl", "strategies.csv", "report.md", "report.html"}) {
    const std::string text = read_text(first.path() / "run" / name);
    EXPECT_FALSE(text.empty()) << name;
    EXPECT_EQ(text, read_text(second.path() / "run" / name)) << name;
  }
  const auto records = read_records(first.path() / "run" / "strategies.jsonl");
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[0].repeat,
            "indexpool strategies --strategy edge,frequency --tokens 128 --sequences 3 --seed 7");
  EXPECT_EQ(records[0].verdict.status, Status::passed);
  const std::string html = read_text(first.path() / "run" / "report.html");
  for (const char* part : {"Dynamic strategies: saved and paid", "Monitoring", "every 3 steps"})
    EXPECT_TRUE(contains(html, part)) << part;
}

TEST(StrategiesCommand, AnotherSeedGivesOtherNumbers) {
  const auto csv = [](const char* seed) {
    return indexpool(quick("ratio", {"--seed", seed, "--format", "csv"})).out;
  };
  EXPECT_NE(csv("1"), csv("2"));
  EXPECT_EQ(csv("2"), csv("2"));
}

TEST(StrategiesCommand, WrongInputIsNamedAndGivesExitCode2) {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Case cases[] = {
      {{"--strategy", "ratoi"}, "unknown strategy 'ratoi': did you mean ratio?"},
      {{"--strategy", "edge", "--tokens", "513K", "--sequences", "2"}, "at most 524288"},
      {{"--tokens", "97"}, "tokens: found 97"},
      {{"--tokens", "many"}, "found 'many'"},
      {{"--sequences", "1"}, "an interval needs two"},
      {{"--tokens", "1M", "--sequences", "100"}, "tokens together"},
      {{"--device", "a100-sxm4-80g"}, "a100-sxm4-80gb"},
      {{"--format", "yaml"}, "yaml"}};
  for (const Case& each : cases) {
    std::vector<std::string> line = {"strategies"};
    line.insert(line.end(), each.arguments.begin(), each.arguments.end());
    const Outcome outcome = indexpool(line);
    EXPECT_EQ(outcome.code, 2) << each.says;
    EXPECT_TRUE(contains(outcome.err, each.says)) << each.says << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace indexpool::cli
