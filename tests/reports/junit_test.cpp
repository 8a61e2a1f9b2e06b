#include <gtest/gtest.h>

#include "indexpool/reports/report.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Junit, IsTheExpectedText) {
  EXPECT_EQ(junit(sample_input(mixed_records())), expected_text("junit.xml"));
}

TEST(Junit, HasOneTestCasePerCheckOrPerRecordWithoutChecks) {
  const std::vector<Record> records = mixed_records();
  std::size_t expected = 0;
  for (const Record& record : records) {
    expected += std::max<std::size_t>(1, record.verdict.checks.size());
  }
  const std::string text = junit(sample_input(records));
  EXPECT_EQ(count_of(text, "<testcase "), expected);
  EXPECT_EQ(count_of(text, "<failure "), 2u);  // failed and untrusted
  EXPECT_EQ(count_of(text, "<error "), 1u);
  EXPECT_EQ(count_of(text, "<skipped "), 2u);  // skipped and unsupported
  EXPECT_NE(text.find("failures=\"2\" errors=\"1\" skipped=\"2\""), std::string::npos);
}

TEST(Junit, FailuresCarryTheRepeatLine) {
  const std::string text = junit(sample_input(mixed_records()));
  EXPECT_EQ(count_of(text, "repeat: indexpool verify --case fp8_glm53.safetensors"), 3u);
}

TEST(Junit, ReportsAVerdictThatNoCheckExplains) {
  std::vector<Record> records = passed_records();
  records.resize(1);
  records[0].verdict.status = Status::failed;
  records[0].verdict.reason = "wrote outside";
  const std::string text = junit(sample_input(records));
  EXPECT_EQ(count_of(text, "<failure type=\"failed\" message=\"wrote outside\">"), 1u);
}

TEST(Junit, IsWellFormedWhateverTheNames) {
  EXPECT_EQ(markup_problem(junit(sample_input(hostile_records()))), "");
  EXPECT_EQ(markup_problem(junit({"", {}, {}, ""})), "");
}

}  // namespace
}  // namespace indexpool::reports
