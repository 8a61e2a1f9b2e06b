// Intervals: what they rest on, and how often they hold.
#include <cmath>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/latency/held_out.hpp"
#include "indexpool/model/latency/spread.hpp"

namespace indexpool {
namespace {

TimedRow copy_row(std::int64_t bytes, double factor) {
  StreamShape shape;
  shape.read = shape.written = Bytes(bytes);
  TimedRow row{"stream", "copy", shape, {}, 1, shape_text(shape), ""};
  row.time = Seconds((3e-6 + 2 * static_cast<double>(bytes) / 1.5e12) * factor);
  return row;
}

std::vector<TimedRow> copies() {
  std::vector<TimedRow> rows;
  for (int i = 0; i < 60; ++i) {
    rows.push_back(copy_row(1'000'000 + 7'000'000LL * i, 1 + 0.03 * std::sin(37.0 * i)));
  }
  return rows;
}

std::vector<UnseenRow> validated(const std::vector<TimedRow>& rows) {
  std::vector<const TimedRow*> pointers;
  for (const TimedRow& row : rows) pointers.push_back(&row);
  return cross_validated(kernel_form("stream"), load_device("a100-sxm4-80gb"), pointers, 1);
}

RC_GTEST_PROP(CrossValidation, NoRowHasAPartInWhatItIsMeasuredBy, ()) {
  std::vector<TimedRow> rows = copies();
  const std::vector<UnseenRow> before = validated(rows);
  const auto spoilt = static_cast<std::size_t>(*rc::gen::inRange(0, 60));
  rows[spoilt].time = rows[spoilt].time * 100;
  const std::vector<UnseenRow> after = validated(rows);
  RC_ASSERT(std::abs(after[spoilt].ratio / (100 * before[spoilt].ratio) - 1) < 1e-12);
  // It does take part in what others are measured by, but not in its own fold.
  const int fold = fold_of(rows[spoilt].family, 1, validation_folds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == spoilt || fold_of(rows[i].family, 1, validation_folds) != fold) continue;
    RC_ASSERT(after[i].ratio == before[i].ratio);
  }
}

TEST(CrossValidation, GivesEachRowOnceInOrderAndNothingForASingleFamily) {
  std::vector<TimedRow> rows = copies();
  const std::vector<UnseenRow> unseen = validated(rows);
  ASSERT_EQ(unseen.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(unseen[i].row, &rows[i]);
  for (TimedRow& row : rows) row.family = "one";
  EXPECT_TRUE(validated(rows).empty());
}

// The tester: folds that saw their rows would make noise of a form with many constants look small.
TEST(CrossValidation, MissesByMoreThanAFitThatSawTheRows) {
  const DeviceSpec device = load_device("a100-sxm4-80gb");
  std::vector<TimedRow> rows = copies();
  rows.resize(12);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].time = rows[i].time * (i % 2 == 0 ? 1.2 : 1);
  std::vector<const TimedRow*> pointers;
  for (const TimedRow& row : rows) pointers.push_back(&row);
  const KernelForm& form = kernel_form("stream");
  const Fit fit = fit_constants(form, device, pointers);
  std::vector<double> constants;
  for (const FittedConstant& constant : fit.constants) constants.push_back(constant.value);
  double seen = 0, unseen = 0;
  const auto square = [](double ratio) { return std::log(ratio) * std::log(ratio); };
  for (const TimedRow& row : rows) {
    seen += square(row.time.value / form.time(row.shape, device, constants).time);
  }
  for (const UnseenRow& row : validated(rows)) unseen += square(row.ratio);
  EXPECT_GT(unseen, seen);
}

TEST(Folds, ShareFamiliesEvenlyWhateverIsHeldOut) {
  constexpr int families = 20000;
  int held = 0, first_of_held = 0, first = 0;
  for (int i = 0; i < families; ++i) {
    const std::string family = fmt::format("m={},k={}", i % 100, i);
    const int fold = fold_of(family, 1, 5);
    ASSERT_TRUE(fold >= 0 && fold < 5);
    first += fold == 0 ? 1 : 0;
    if (!held_out(family, 1, 0.3)) continue;
    ++held;
    first_of_held += fold == 0 ? 1 : 0;
  }
  EXPECT_NEAR(first / double{families}, 0.2, 0.0115);  // four standard deviations
  EXPECT_NEAR(first_of_held / static_cast<double>(held), 0.2, 0.021);
}

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct Draws {
  double good = 0;  // share of draws whose interval holds 90 % of the distribution
  double mean = 0;  // of what the intervals hold
};

// Ratios are log-normal, one or several rows of a family alike.
Draws drawn(int families, int rows_each, int draws) {
  std::mt19937_64 random(17);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  Draws out;
  std::vector<TimedRow> rows;
  for (int i = 0; i < families; ++i) {
    rows.push_back(copy_row(1'000'000, 1));
    rows.back().family = fmt::format("{}", i);
  }
  constexpr double sigma = 0.1;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<UnseenRow> unseen;
    for (const TimedRow& row : rows) {
      const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307 * uniform());
      for (int i = 0; i < rows_each; ++i) {
        unseen.push_back({&row, Resource::hbm, std::exp(sigma * normal)});
      }
    }
    const Spread spread = spreads(unseen).at("all");
    const double inside =
        normal_below(std::log(spread.high) / sigma) - normal_below(std::log(spread.low) / sigma);
    out.good += inside >= 0.9 ? 1.0 / draws : 0;
    out.mean += inside / draws;
  }
  return out;
}

// 400 draws: the share of those that hold has a standard deviation of 0.015.
TEST(Spreads, HoldNinetyPercentWithTheConfidenceTheyState) {
  for (const int families : {40, 110, 400}) {
    const Draws draws = drawn(families, 1, 400);
    EXPECT_GE(draws.good, 0.9 - 0.045) << families;
    EXPECT_LE(draws.mean, 0.97) << families;  // and are not wider than they must be
  }
}

// P(Beta(16, 2) > 0.9) = 0.52, if they are all there is.
TEST(Spreads, OfSeventeenFamiliesTakeTheExtremesAndHoldMoreOftenThanNot) {
  EXPECT_GE(drawn(17, 1, 400).good, 0.52 - 0.075);
}

TEST(Spreads, RowsOfOneFamilyCountAsOne) {
  const Draws alone = drawn(60, 1, 300), tenfold = drawn(60, 10, 300);
  EXPECT_GE(tenfold.good, 0.9 - 0.055);
  EXPECT_NEAR(tenfold.mean, alone.mean, 0.01);
}

TEST(Spreads, AreByKindAndContainThePrediction) {
  std::vector<TimedRow> rows;
  for (int i = 0; i < 80; ++i) rows.push_back(copy_row(i < 40 ? 90'000'000 + i : 1'000'000 + i, 1));
  std::vector<UnseenRow> unseen;
  for (int i = 0; i < 80; ++i) {
    unseen.push_back({&rows[static_cast<std::size_t>(i)], Resource::hbm, i < 40 ? 1.1 : 0.8});
  }
  const std::map<std::string, Spread> found = spreads(unseen);
  EXPECT_DOUBLE_EQ(found.at("HBM, over 80 MB").high, 1.1);
  EXPECT_EQ(found.at("HBM, over 80 MB").low, 1);
  EXPECT_DOUBLE_EQ(found.at("up to 80 MB").low, 0.8);
  EXPECT_EQ(found.at("up to 80 MB").high, 1);
  EXPECT_EQ(found.at("all").rows, 80);
  EXPECT_TRUE(spreads({}).empty());
}

// The extremes of 38 values hold 90 % with a confidence of 90 %, those of 37 do not.
TEST(Spreads, AKindWhoseExtremesAreNotEnoughIsAsWideAsAllAtLeast) {
  for (const int large : {37, 38}) {
    std::vector<TimedRow> rows;
    for (int i = 0; i < 100; ++i) {
      rows.push_back(copy_row(i < large ? 90'000'000 + i : 1'000'000 + i, 1));
    }
    std::vector<UnseenRow> unseen;
    for (int i = 0; i < 100; ++i) {
      const double ratio = i < large ? 1.01 : i % 2 == 0 ? 1.5 : 0.5;
      unseen.push_back({&rows[static_cast<std::size_t>(i)], Resource::hbm, ratio});
    }
    const Spread spread = spreads(unseen).at("over 80 MB");
    EXPECT_DOUBLE_EQ(spread.high, large == 37 ? 1.5 : 1.01);
    EXPECT_DOUBLE_EQ(spread.low, large == 37 ? 0.5 : 1);
  }
}

}  // namespace
}  // namespace indexpool
