// What predict, list and report print and write.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

Record record_with(Status status) {
  Record record;
  record.case_name = "by hand";
  record.op = "pool";
  record.implementation = "pool";
  record.environment.target = "simt";
  record.verdict.status = status;
  record.verdict.reason = "because";
  record.verdict.checks = {{"bound", status, "because", 0.5, 10, 0}};
  record.repeat = "indexpool verify";
  return record;
}

TEST(Predict, MemoryOfTheCacheIsExact) {
  const Outcome outcome = indexpool({"predict", "--tokens", "1M", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(rows[0]["what"], "pooled cache");
  // 2^18 pools of 128 codes and a four-byte scale in 11 layers.
  EXPECT_EQ(rows[0]["bytes"], std::int64_t{262'144} * 132 * 11);
  EXPECT_EQ(rows[2]["bytes"], std::int64_t{1'048'576} * 132 * 11);
}

TEST(Predict, IntervalsHoldTheirPredictionAndGrowWithTheContext) {
  const Outcome outcome = indexpool({"predict", "--tokens", "4K,10M", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, double> last;
  std::size_t timed = 0;
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    if (row["time_s"].is_null()) continue;
    ++timed;
    EXPECT_LE(row["time_low_s"], row["time_s"]);
    EXPECT_LE(row["time_s"], row["time_high_s"]);
    const std::string key = row["phase"].get<std::string>() + "/" + row["what"].get<std::string>();
    EXPECT_GE(row["time_s"].get<double>(), last[key]) << key;
    last[key] = row["time_s"];
  }
  EXPECT_EQ(timed, 20u);  // 2 contexts, 2 phases, 4 operations and their sum
}

TEST(Predict, SaysThatThePromptComesInChunks) {
  // run predicts pooling in one launch: a reader must see why its time is another.
  const Outcome outcome = indexpool({"predict", "--tokens", "1M", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  const auto pool =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row["what"] == "pool"; });
  ASSERT_NE(pool, rows.end());
  EXPECT_EQ((*pool)["phase"], "prompt, 8K chunks");
}

TEST(Predict, EveryFormatSaysTheSame) {
  const Outcome table = indexpool({"predict", "--tokens", "1M"});
  const Outcome csv = indexpool({"predict", "--tokens", "1M", "--format", "csv"});
  const Outcome md = indexpool({"predict", "--tokens", "1M", "--format", "md"});
  const Outcome json = indexpool({"predict", "--tokens", "1M", "--format", "json"});
  const std::size_t rows = nlohmann::json::parse(json.out).size();
  const auto lines = [](const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  EXPECT_EQ(lines(table.out), rows + 2);
  EXPECT_EQ(lines(csv.out), rows + 1);
  EXPECT_EQ(lines(md.out), rows + 2);
  EXPECT_EQ(table.out.find('\x1b'), std::string::npos) << "colour without a terminal";
}

TEST(Predict, OutWritesTheFileInsteadOfStandardOutput) {
  const Folder folder;
  const std::string path = folder.file("deep/1M.csv");
  const Outcome outcome =
      indexpool({"predict", "--tokens", "1M", "--format", "csv", "--out", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(read_text(path), indexpool({"predict", "--tokens", "1M", "--format", "csv"}).out);
}

TEST(List, NamesEveryKindOfThing) {
  const Outcome outcome = indexpool({"list", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, int> kinds;
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    EXPECT_FALSE(row["name"].get<std::string>().empty());
    EXPECT_FALSE(row["what"].get<std::string>().empty()) << row["name"];
    ++kinds[row["kind"].get<std::string>()];
  }
  for (const char* kind : {"models", "devices", "suites", "modes", "fills", "kernels", "ops"}) {
    EXPECT_GT(kinds[kind], 0) << kind;
  }
}

TEST(Report, ExitCodeIsThatOfTheVerdicts) {
  const std::pair<Status, int> expected[] = {
      {Status::passed, 0},    {Status::marginal, 0},    {Status::failed, 1}, {Status::error, 1},
      {Status::untrusted, 4}, {Status::unsupported, 4}, {Status::skipped, 4}};
  const Folder folder;
  for (const auto& [status, code] : expected) {
    write_records(folder.file("r.jsonl"), {record_with(status)});
    EXPECT_EQ(indexpool({"report", folder.file("r.jsonl")}).code, code) << to_string(status);
  }
  write_records(folder.file("a.jsonl"), {record_with(Status::untrusted)});
  write_records(folder.file("b.jsonl"), {record_with(Status::failed)});
  EXPECT_EQ(indexpool({"report", folder.file("a.jsonl"), folder.file("b.jsonl")}).code, 1);
}

TEST(Report, WritesEveryDocumentAndTheSameRecords) {
  const Folder folder;
  write_records(folder.file("r.jsonl"), {record_with(Status::passed), record_with(Status::failed)});
  const Outcome outcome =
      indexpool({"report", folder.file("r.jsonl"), "--out", folder.file("report")});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(read_text(folder.file("report/records.jsonl")), read_text(folder.file("r.jsonl")));
  for (const char* name : {"report.html", "report.md", "junit.xml", "pipeline.dot"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "report" / name)) << name;
  }
}

TEST(Report, AFolderThatCannotBeMadeIsTheEnvironmentsFault) {
  const Folder folder;
  write_records(folder.file("r.jsonl"), {record_with(Status::passed)});
  const Outcome outcome =
      indexpool({"report", folder.file("r.jsonl"), "--out", folder.file("r.jsonl/inside")});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
