#include "indexpool/reports/table.hpp"

#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/reports/report.hpp"
#include "indexpool/reports/side_by_side.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

TEST(SideBySide, TableIsTheExpectedText) {
  EXPECT_EQ(side_by_side(mixed_records(), Format::table), expected_text("table.txt"));
}

TEST(SideBySide, EveryLineOfATableIsAligned) {
  std::istringstream lines(side_by_side(passed_records(), Format::table));
  std::string headings, rule;
  std::getline(lines, headings);
  std::getline(lines, rule);
  const std::size_t verdict = headings.find("verdict");
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.find("✓ passed"), verdict) << line;
    EXPECT_LE(display_width(line), display_width(rule));
  }
}

TEST(SideBySide, JsonHasEveryRecordAndColumn) {
  const auto rows = nlohmann::json::parse(side_by_side(mixed_records(), Format::json));
  ASSERT_EQ(rows.size(), mixed_records().size());
  EXPECT_EQ(rows[0]["op"], "pool");
  EXPECT_EQ(rows[0]["status"], "passed");
  EXPECT_DOUBLE_EQ(rows[0]["worst_error_over_bound"].get<double>(), 0.21);
  EXPECT_EQ(rows[0]["counted_bytes"], 141'056);
  EXPECT_EQ(rows[4]["decidable_rows"], 257);
  EXPECT_TRUE(rows[5]["predicted_time_s"].is_null());
  EXPECT_EQ(rows[5]["repeat"], "indexpool verify --case fp8_glm53.safetensors");
}

TEST(SideBySide, CsvHasOneLinePerRecord) {
  std::istringstream lines(side_by_side(mixed_records(), Format::csv));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 1 + mixed_records().size());
}

TEST(SideBySide, ManyRecordsAreGroupedForPeopleOnly) {
  std::vector<Record> records;
  for (int i = 0; i < 100; ++i) records.push_back(passed_records().front());
  EXPECT_EQ(nlohmann::json::parse(side_by_side(records, Format::json)).size(), 100u);
  const std::string table = side_by_side(records, Format::table);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);  // headings, rule, one group
}

TEST(SideBySide, ColourIsOnlyUsedWhenAsked) {
  EXPECT_EQ(side_by_side(mixed_records(), Format::table).find('\x1b'), std::string::npos);
  EXPECT_NE(side_by_side(mixed_records(), Format::table, true).find('\x1b'), std::string::npos);
}

TEST(Table, HostileNamesStayInTheirFormat) {
  for (const Format format : {Format::table, Format::csv, Format::md}) {
    const std::string text = side_by_side(hostile_records(), format);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x01'), std::string::npos);
  }
  EXPECT_EQ(nlohmann::json::parse(side_by_side(hostile_records(), Format::json)).size(), 1u);
}

TEST(Table, JsonKeepsNumbersThatJsonLacks) {
  Table table{{{"a", "a"}, {"b", "b"}, {"c", "c"}},
              {{{"x", std::numeric_limits<double>::infinity()}, {"y", true}, Cell()}}};
  const auto rows = nlohmann::json::parse(render(table, Format::json));
  EXPECT_EQ(rows[0]["a"], "inf");
  EXPECT_EQ(rows[0]["b"], true);
  EXPECT_TRUE(rows[0]["c"].is_null());
}

TEST(Table, EmptyTableKeepsItsHeadings) {
  const Table table{{{"a", "first"}}, {}};
  EXPECT_EQ(render(table, Format::table), "first\n─────\n");
  EXPECT_EQ(render(table, Format::json), "[]\n");
  EXPECT_EQ(render(table, Format::csv), "a\n");
  EXPECT_EQ(render(table, Format::md), "| first |\n|---|\n");
}

}  // namespace
}  // namespace indexpool::reports
