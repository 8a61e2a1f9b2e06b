#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

TEST(Field, ListsScenariosWithSymptomReferenceAndRefusal) {
  const Outcome outcome = indexpool(
      {"field", "--id", "blocks_read_as_pages", "packed_stride_int32", "--format", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"], "blocks_read_as_pages");
  EXPECT_EQ(rows[0]["caught_by"], "slots");
  EXPECT_TRUE(contains(rows[0]["references"], "vllm-project/vllm#54359"));
  EXPECT_EQ(rows[1]["stand_in"], "refused");
  EXPECT_TRUE(contains(rows[1]["reason"], "page 1994"));
  EXPECT_EQ(rows[1]["ours"], "passed");
}

TEST(Field, SaysInATableHowManyWereShownAndWhatIsNotRepresented) {
  const Outcome outcome = indexpool({"field", "--id", "rows_beyond_grid"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1 of 1 scenarios")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "Not represented: ")) << outcome.out;
}

TEST(Field, NamesNearScenarios) {
  const Outcome outcome = indexpool({"field", "--id", "relu_mising"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(contains(outcome.err, "relu_missing")) << outcome.err;
}

TEST(Field, IsListedAndFoundByWhoTakesItForASuite) {
  const Outcome listed = indexpool({"list", "field", "--format", "csv"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_TRUE(contains(listed.out, "blocks_read_as_pages")) << listed.out;
  const Outcome outcome = indexpool({"verify", "--suite", "field"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "indexpool field")) << outcome.err;
}

TEST(Field, WritesAReportOfBothSides) {
  const Folder folder;
  const std::string out = folder.file("report");
  EXPECT_EQ(indexpool({"field", "--id", "index_table_too_narrow", "--out", out}).code, 0);
  const std::string records = read_text(out + "/records.jsonl");
  EXPECT_TRUE(contains(records, "stand-in")) << records;
  EXPECT_TRUE(contains(records, "column 2048")) << records;
  const Outcome again = indexpool({"report", out + "/records.jsonl", "--format", "csv"});
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(Field, ExplainsItselfWithExamples) {
  const Outcome outcome = indexpool({"field", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "Examples:")) << outcome.out;
}

}  // namespace
}  // namespace indexpool::cli
