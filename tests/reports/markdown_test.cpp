#include <gtest/gtest.h>

#include "indexpool/reports/report.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t limit = std::size_t{1} << 20;

TEST(Markdown, IsTheExpectedText) {
  EXPECT_EQ(markdown(sample_input(mixed_records())), expected_text("report.md"));
}

TEST(Markdown, StaysBelowAMebibyte) {
  std::vector<Record> records;
  const std::vector<Record> some = mixed_records();
  for (int i = 0; i < 3000; ++i) records.insert(records.end(), some.begin(), some.end());
  const std::string text = markdown(sample_input(records));
  EXPECT_LT(text.size(), limit);
  EXPECT_NE(text.find("more records in records.jsonl"), std::string::npos);
}

TEST(Markdown, StaysBelowAMebibyteWithLongDistinctNames) {
  std::vector<Record> records;
  for (int i = 0; i < 3000; ++i) {
    Record record = hostile_records().front();
    record.op = record.case_name = std::to_string(i) + std::string(5000, '<');
    record.verdict.reason = record.repeat = std::string(50'000, '&');
    record.prediction->device = record.op;
    records.push_back(record);
  }
  ReportInput input = sample_input(records);
  input.title = std::string(1 << 20, '<');
  input.command = std::string(1 << 20, '`');
  EXPECT_LT(markdown(input).size(), limit);
}

TEST(Markdown, HostileNamesStayInTheirCells) {
  const std::string text = markdown(sample_input(hostile_records()));
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("\n# x"), std::string::npos);
}

TEST(Markdown, SaysThatNothingWasShownWithoutRecords) {
  EXPECT_NE(markdown({"empty", {}, {}, ""}).find("Nothing was verified"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::reports
