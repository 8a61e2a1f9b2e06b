#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"

#include "sample.hpp"

namespace indexpool::reports {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class WriteReport : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  // ctest runs each test in a process of its own, several at a time.
  const fs::path folder_ =
      fs::temp_directory_path() / (std::string("indexpool-write-report-") +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(WriteReport, MakesItsFolderAndEveryFile) {
  const ReportInput input = sample_input(mixed_records());
  write_report(folder_ / "deep" / "er", input);
  EXPECT_EQ(read(folder_ / "deep/er/report.html"), html(input));
  EXPECT_EQ(read(folder_ / "deep/er/report.md"), markdown(input));
  EXPECT_EQ(read(folder_ / "deep/er/junit.xml"), junit(input));
  EXPECT_EQ(read(folder_ / "deep/er/pipeline.dot"), pipeline_dot(input.records));
  EXPECT_EQ(read(folder_ / "deep/er/pipeline.svg"), svg_from_dot(pipeline_dot(input.records)));
}

TEST_F(WriteReport, RecordsGiveTheSameReportAgain) {
  const ReportInput input = sample_input(mixed_records());
  write_report(folder_, input);
  ReportInput again = input;
  again.records = read_records(folder_ / "records.jsonl");
  EXPECT_EQ(html(again), html(input));
  EXPECT_EQ(markdown(again), markdown(input));
}

TEST_F(WriteReport, LeavesNoTemporaryFiles) {
  write_report(folder_, sample_input(passed_records()));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
  std::set<std::string> expected = {"records.jsonl", "pipeline.dot", "junit.xml", "report.md",
                                    "report.html"};
  if (names.contains("pipeline.svg")) expected.insert("pipeline.svg");  // needs Graphviz
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace indexpool::reports
