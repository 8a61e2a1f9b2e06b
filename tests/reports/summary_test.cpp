#include "indexpool/reports/summary.hpp"

#include <gtest/gtest.h>

#include "sample.hpp"

namespace indexpool::reports {
namespace {

TEST(Summary, CountsStatusesTheWorstFirst) {
  const auto counts = status_counts(mixed_records());
  ASSERT_EQ(counts.size(), 7u);
  EXPECT_EQ(counts.front(), (std::pair{Status::error, std::int64_t{1}}));
  EXPECT_EQ(counts[5], (std::pair{Status::passed, std::int64_t{5}}));
}

TEST(Summary, GroupsTakeTheWorstOfTheirRecords) {
  const std::vector<Group> groups = grouped(mixed_records());
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups.front().op, "pool");  // pipeline order
  EXPECT_EQ(groups.front().records, 3);
  EXPECT_EQ(groups.front().failed, 1);
  EXPECT_EQ(groups.front().status, Status::failed);
  EXPECT_DOUBLE_EQ(groups.front().worst_utilisation, 3.4);
  EXPECT_EQ(groups.back().op, "topk");
  EXPECT_EQ(groups.back().decidable_rows, 257);
}

TEST(Summary, HeadlineNeverCallsUnverifiedThingsPassed) {
  EXPECT_EQ(headline(passed_records()),
            "Every check of 5 operations held; the largest error is 31 % of its bound.");
  EXPECT_EQ(headline(mixed_records()),
            "2 of 9 records did not hold; the first ones are listed below.");
  std::vector<Record> records = mixed_records();
  EXPECT_EQ(headline({records[6]}),
            "1 of 1 records prove nothing: a check of theirs could not have failed.");
  EXPECT_EQ(headline({records[9], records[10]}),
            "No record has a verdict: everything was skipped or unsupported.");
  EXPECT_EQ(headline({records[1], records[10]}),
            "Every check of 1 operation held; every comparison is exact. 1 of 2 records are "
            "unsupported and were not verified.");
}

TEST(Summary, ForecastsComeInPipelineOrderWithTheirContext) {
  const std::vector<Forecast> all = forecasts(passed_records());
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all.front().op, "pool");
  EXPECT_EQ(all.front().tokens, 1 << 20);
  EXPECT_EQ(all.front().layers, 11);
  EXPECT_EQ(all.back().op, "topk");
}

TEST(Summary, ForecastOfAProblemIsForItsOwnTokens) {
  std::vector<Record> records = {passed_records().front()};
  records[0].values.clear();
  records[0].problem = Problem{};
  records[0].problem->lengths = {5, 64};
  EXPECT_EQ(forecasts(records).front().tokens, 69);
}

}  // namespace
}  // namespace indexpool::reports
