// What list and report print and write.
#include <map>

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

TEST(Report, TakesTheResultsOfOtherCommandsAsSections) {
  const Folder folder;
  write_records(folder.file("r.jsonl"), {record_with(Status::passed)});
  write_text(folder.file("rules.json"),
             R"([{"mutant": "scale_447", "class": "scale", "ours": "noticed",
                  "allclose": "let through"}])");
  const Outcome outcome = indexpool({"report", folder.file("r.jsonl"), "--rules",
                                     folder.file("rules.json"), "--out", folder.file("report")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_text(folder.file("report/report.html"));
  EXPECT_TRUE(contains(page, "What rules of public projects notice"));
  EXPECT_TRUE(contains(page, "0 of 1"));
  EXPECT_TRUE(contains(page, "--rules"));
  const Outcome wrong =
      indexpool({"report", folder.file("r.jsonl"), "--faults", folder.file("rules.json")});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "rules.json: /0")) << wrong.err;
  EXPECT_EQ(indexpool({"report", folder.file("r.jsonl"), "--mutants", "absent.json"}).code, 2);
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
