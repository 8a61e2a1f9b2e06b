// Distribution of errors over bounds: summaries, records and back, what is loose.
#include "indexpool/reports/utilisation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reports/report.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

UtilisationRow row_of(std::vector<double> runs, std::int64_t campaign) {
  UtilisationRow names;
  names.op = "logits", names.kernel = "logits_mma", names.check = "bound", names.of = "all";
  names.campaign = campaign;
  names.elements = 500;
  return summarise(names, std::move(runs));
}

TEST(Utilisation, SummarisesByHand) {
  const UtilisationRow row = row_of({0.6, 0, 0.2, 0.3, 0.1, 0, 0.05, 0.4, 0.5, 0.26}, 10);
  EXPECT_EQ(row.runs, 10);
  EXPECT_EQ(row.exact, 2);
  EXPECT_EQ(row.p10, 0.05);
  EXPECT_EQ(row.median, 0.26);  // the fourth of the eight that had an error
  EXPECT_EQ(row.p90, 0.6);
  EXPECT_EQ(row.worst, 0.6);
  // [1/2, 1): 0.6, 0.5. [1/4, 1/2): 0.3, 0.4, 0.26. [1/8, ..): 0.2. 0.1 in the next, then 0.05.
  EXPECT_EQ(row.octaves, (std::vector<std::int64_t>{2, 3, 1, 1, 1}));
}

RC_GTEST_PROP(Utilisation, OrderIsOfNoConsequenceAndRunsAddUp, ()) {
  auto runs = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 1'000'001), [](int n) { return n * 1e-6; })));
  const UtilisationRow row = row_of(runs, 10);
  std::reverse(runs.begin(), runs.end());
  const UtilisationRow other = row_of(runs, 10);
  RC_ASSERT(row.median == other.median);
  RC_ASSERT(row.octaves == other.octaves);
  RC_ASSERT(row.p10 <= row.median && row.median <= row.p90 && row.p90 <= row.worst);
  std::int64_t counted = row.exact;
  for (const std::int64_t n : row.octaves) counted += n;
  RC_ASSERT(counted == row.runs);
}

TEST(Utilisation, ARecordHoldsARowThroughJson) {
  const UtilisationRow row = row_of({0.6, 0, 0.2, 0.001, 1e-9}, 12'345);
  const std::string line = to_json_line(utilisation_record(row, "indexpool utilisation"));
  const auto rows = utilisation_rows({record_from_json(line, "line 1")});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].octaves, row.octaves);
  EXPECT_EQ(rows[0].median, row.median);
  EXPECT_EQ(rows[0].worst, row.worst);
  EXPECT_EQ(rows[0].runs, row.runs);
  EXPECT_EQ(rows[0].campaign, 12'345);
  EXPECT_EQ(rows[0].elements, 500);
  EXPECT_EQ(rows[0].exact, 1);
  EXPECT_EQ(rows[0].check, "bound");
}

TEST(Utilisation, OrdinaryRecordsAreRunsOfTheirChecks) {
  std::vector<Record> records(4, passed_records()[0]);
  for (int i = 0; i < 4; ++i) {
    records[static_cast<std::size_t>(i)].verdict.checks[0].utilisation = 0.1 * (i + 1);
  }
  const auto rows = utilisation_rows(records);
  ASSERT_EQ(rows.size(), 3u);  // bound, checksum, weight_sum: the others are exact
  EXPECT_EQ(rows[0].check, "bound");
  EXPECT_EQ(rows[0].runs, 4);
  EXPECT_DOUBLE_EQ(rows[0].median, 0.2);
  EXPECT_DOUBLE_EQ(rows[0].worst, 0.4);
}

TEST(Loose, TakesTenThousandRunsAndAThousandfoldBound) {
  EXPECT_TRUE(loose(row_of({0.0009}, 10'000)));
  EXPECT_FALSE(loose(row_of({0.0011}, 10'000)));
  EXPECT_FALSE(loose(row_of({0.0009}, 9'999)));
  EXPECT_FALSE(loose(row_of({0}, 10'000)));
  const auto listed = loose_table({row_of({0.0009}, 10'000), row_of({0.5}, 10'000)});
  ASSERT_EQ(listed.rows.size(), 1u);
  EXPECT_FALSE(listed.rows[0].back().text.empty());
}

TEST(Loose, EveryCheckWithAFigureHasAReason) {
  for (const char* check : {"bound", "checksum", "weight_sum", "golden"}) {
    EXPECT_FALSE(why_worst_case("pool", check).empty()) << check;
  }
  EXPECT_NE(why_worst_case("pool", "bound"), why_worst_case("logits", "bound"));
}

TEST(UtilisationSection, ShowsMedianWorstAndLooseChecksInPageAndMarkdown) {
  const std::vector<Record> records = {
      utilisation_record(row_of({0.5, 0.125}, 10'000), "indexpool utilisation"),
      utilisation_record(row_of({0.0005}, 10'000), "indexpool utilisation")};
  const ReportInput input{"bounds", records, {}, ""};
  const std::string page = html(input);
  EXPECT_EQ(markup_problem(page), "");
  for (const std::string& text : {page, markdown(input)}) {
    EXPECT_NE(text.find("0.125"), std::string::npos);
    EXPECT_NE(text.find("Loose"), std::string::npos);
    EXPECT_NE(text.find("2e+03"), std::string::npos);
  }
  const std::vector<Record> tight = {records[0]};
  EXPECT_NE(markdown({"bounds", tight, {}, ""}).find("No check is loose"), std::string::npos);
}

TEST(UtilisationSection, IsAbsentWhereEveryCheckIsExact) {
  Record exact = passed_records()[2];
  EXPECT_EQ(utilisation_markdown({exact}), "");
  EXPECT_EQ(utilisation_markup({exact}), "");
}

}  // namespace
}  // namespace indexpool::reports
