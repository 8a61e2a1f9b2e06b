#include <gtest/gtest.h>

#include "indexpool/reports/report.hpp"
#include "indexpool/reports/status_style.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Markup, ReaderRejectsWhatItShould) {
  EXPECT_EQ(markup_problem("<a b=\"1\"><c/>x &amp; y</a>"), "");
  for (const char* bad : {"<a>", "</a>", "<a><b></a></b>", "<a b=1></a>", "<a b=\"1\" b=\"2\"></a>",
                          "<a>&</a>", "<a>&nope;</a>", "< a></a>", "<a b=\"<\"></a>", "<!-- x"}) {
    EXPECT_NE(markup_problem(bad), "") << bad;
  }
}

TEST(Html, IsWellFormedAndFetchesNothing) {
  for (const auto& records : {passed_records(), mixed_records(), hostile_records(), {}}) {
    const std::string page = html(sample_input(records));
    EXPECT_EQ(markup_problem(page), "");
    // Names may spell anything, escaped; nothing else may look like a reference.
    EXPECT_EQ(external_references(page), std::vector<std::string>());
  }
}

TEST(Html, FirstScreenAnswersTheFourQuestions) {
  const std::string page = html(sample_input(passed_records()));
  const std::size_t verdict = page.find("<div class=\"word\">Passed</div>");
  const std::size_t compared = page.find("What was compared");
  const std::size_t forecast = page.find("What it would take: 1M tokens on a100-sxm4-80gb");
  const std::size_t repeat = page.find("<pre>indexpool run</pre>");
  const std::size_t rest = page.find("How much of each bound was used");
  ASSERT_NE(rest, std::string::npos);
  EXPECT_LT(verdict, compared);
  EXPECT_LT(compared, forecast);
  EXPECT_LT(forecast, repeat);
  EXPECT_LT(repeat, rest);
  EXPECT_TRUE(contains(page, "257 of 259"));
  EXPECT_TRUE(contains(page, "the largest error is 31 % of its bound"));
}

// 11 layers times append 2.9, quantize_query 2.8, logits 22.4 and topk 6.1 µs; pool is no part of a
// decode step.
TEST(Html, DecodeStepSumsItsOperationsOverLayers) {
  EXPECT_TRUE(contains(html(sample_input(passed_records())), "376 µs (320–489 µs)"));
}

TEST(Html, NamesTheWorstFirst) {
  const std::string page = html(sample_input(mixed_records()));
  EXPECT_TRUE(contains(page, "<div class=\"word\">Error</div>"));
  const std::size_t error = page.find("divergent barrier at logits.cuh:88");
  const std::size_t failure = page.find("row 12, channel 7");
  const std::size_t untrusted = page.find("no row is decidable");
  EXPECT_LT(error, failure);
  EXPECT_LT(failure, untrusted);
  EXPECT_NE(untrusted, std::string::npos);
}

TEST(Html, SaysThatNothingWasShownWithoutRecords) {
  const std::string page = html({"empty", {}, {}, ""});
  EXPECT_TRUE(contains(page, "There are no records, so nothing was shown."));
  EXPECT_TRUE(contains(page, "Nothing was verified"));
  EXPECT_FALSE(contains(page, ">Passed<"));
}

TEST(Html, ExplainsEveryStatus) {
  const std::string page = html(sample_input({}));
  for (const StatusStyle& row : status_styles()) {
    EXPECT_TRUE(contains(page, std::string("badge ") + std::string(to_string(row.status))));
  }
}

TEST(Html, StaysReadableWithManyRecords) {
  std::vector<Record> records;
  const std::vector<Record> some = mixed_records();
  for (int i = 0; i < 2000; ++i) records.insert(records.end(), some.begin(), some.end());
  const std::string page = html(sample_input(records));
  EXPECT_LT(page.size(), std::size_t{2} << 20);
  EXPECT_TRUE(contains(page, "more records in records.jsonl"));
  EXPECT_EQ(markup_problem(page), "");
}

TEST(Html, IsTheSameForTheSameRecords) {
  EXPECT_EQ(html(sample_input(mixed_records())), html(sample_input(mixed_records())));
}

}  // namespace
}  // namespace indexpool::reports
