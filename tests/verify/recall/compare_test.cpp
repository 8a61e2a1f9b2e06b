// Properties that hold for every pooling on any data.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "small_data.hpp"

namespace indexpool::verify::recall {
namespace {

CompareOptions quick(std::vector<std::int64_t> ratios = {4}) {
  CompareOptions options;
  options.ratios = std::move(ratios);
  options.epochs = 2;
  options.threads = 1;
  return options;
}

bool ordered(const reference::training::Interval& of) {
  return of.low <= of.value + 1e-12 && of.value <= of.high + 1e-12;
}

RC_GTEST_PROP(Recall, OfTheOracleIsOneAndNoPoolingFindsMoreThanTheBestPools, ()) {
  CompareOptions options = quick({2, 4, 8});
  options.k = *rc::gen::inRange<std::int64_t>(1, 17);
  const auto rows = compare(small_data(*rc::gen::inRange<std::uint64_t>(0, 1000000)), options);
  for (const Row& row : rows) {
    const Row& best = row_of(rows, "best_pools", Form::unpooled, row.ratio);
    if (row.policy == "oracle") {
      RC_ASSERT(std::abs(row.recall.value - 1) < 1e-12 && std::abs(row.f1.value - 1) < 1e-12);
      RC_ASSERT(row.mass.value == row.oracle_mass && row.selected == options.k);
      continue;
    }
    RC_ASSERT(row.selected == (options.k + row.ratio - 1) / row.ratio * row.ratio);
    RC_ASSERT(row.recall.value <= best.recall.value + 1e-12);
    // Every query selects as many, so F1 is recall by a factor.
    const double both = static_cast<double>(options.k + row.selected);
    RC_ASSERT(std::abs(row.f1.value -
                       row.recall.value * 2 * static_cast<double>(options.k) / both) < 1e-12);
  }
}

RC_GTEST_PROP(Recall, AndItsCompanionsLieInZeroToOneWithinTheirIntervals, ()) {
  const auto rows =
      compare(small_data(*rc::gen::inRange<std::uint64_t>(0, 1000000)), quick({2, 8}));
  RC_ASSERT(rows.size() == 2 * (7 * 2 + 6));
  for (const Row& row : rows) {
    for (const auto* of : {&row.recall, &row.f1, &row.mass}) {
      RC_ASSERT(of->low >= 0 && of->high <= 1 + 1e-12);
      RC_ASSERT(ordered(*of));
    }
    RC_ASSERT(ordered(row.over_mean));
    RC_ASSERT(row.queries == 12);
    RC_ASSERT(row.loss_after <= row.loss_before);
  }
}

RC_GTEST_PROP(Recall, IsOneForEveryPoolingOfOneTokenButThatWithANorm, ()) {
  for (const Row& row :
       compare(small_data(*rc::gen::inRange<std::uint64_t>(0, 1000000)), quick({1}))) {
    if (row.policy == "csa") continue;  // two windows, and a norm that takes the length
    RC_ASSERT(row.recall.value > 1 - 1e-12);
    RC_ASSERT(row.mass.value == row.oracle_mass);
  }
}

RC_GTEST_PROP(Recall, DoesNotDependOnTheOrderOfQueries, ()) {
  DataSet data = small_data(*rc::gen::inRange<std::uint64_t>(0, 1000000));
  CompareOptions options = quick();
  options.policies = {"last", "plain", "block_max", "best_pools"};
  const auto before = compare(data, options);
  const std::ptrdiff_t query = data.geometry.heads * data.geometry.head_dim;
  for (auto& sequence : data.held_out) {
    std::rotate(sequence.queries.begin(), sequence.queries.begin() + query, sequence.queries.end());
    std::rotate(sequence.head_weights.begin(), sequence.head_weights.begin() + 2,
                sequence.head_weights.end());
  }
  for (const Row& row : compare(data, options)) {
    const Row& same = row_of(before, row.policy, row.form);
    RC_ASSERT(std::abs(row.recall.value - same.recall.value) < 1e-12);
    RC_ASSERT(std::abs(row.recall.low - same.recall.low) < 1e-12);
    RC_ASSERT(std::abs(row.mass.value - same.mass.value) < 1e-12);
  }
}

RC_GTEST_PROP(Recall, NeverFallsWhenMorePoolsAreSelected, ()) {
  const DataSet data = small_data(*rc::gen::inRange<std::uint64_t>(0, 1000000));
  CompareOptions options = quick();
  options.policies = {"kpool", "last", "block_max"};
  std::vector<Row> fewer;
  for (options.pools = 1; options.pools <= 8; ++options.pools) {
    const auto rows = compare(data, options);
    for (const Row& row : fewer) {
      const Row& now = row_of(rows, row.policy, row.form);
      RC_ASSERT(now.recall.value >= row.recall.value - 1e-12);
      RC_ASSERT(now.mass.value >= row.mass.value - 1e-12);
    }
    fewer = rows;
  }
  for (const Row& row : fewer) RC_ASSERT(row.recall.value > 1 - 1e-12);  // all eight pools
}

bool same(const std::vector<Row>& a, const std::vector<Row>& b) {
  return std::ranges::equal(a, b, [](const Row& x, const Row& y) {
    return x.policy == y.policy && x.form == y.form && x.recall.value == y.recall.value &&
           x.recall.low == y.recall.low && x.mass.high == y.mass.high &&
           x.loss_after == y.loss_after;
  });
}

TEST(Recall, IsTheSameOnAnyNumberOfThreadsAndAnotherWithAnotherSeed) {
  CompareOptions options = quick({2, 4});
  options.pooled = reference::training::Width::i8;
  const auto once = compare(small_data(1), options);
  options.threads = 3;
  EXPECT_TRUE(same(once, compare(small_data(1), options)));
  options.seed = 2;
  EXPECT_FALSE(same(once, compare(small_data(1), options)));
}

TEST(Recall, RowsAreRankedWithinEachRatio) {
  const auto rows = compare(small_data(3), quick({2, 4}));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].ratio == rows[i - 1].ratio) {
      EXPECT_LE(rows[i].recall.value, rows[i - 1].recall.value);
    }
  }
  EXPECT_EQ(rows.front().policy, "oracle");
}

TEST(Recall, EveryJobIsReported) {
  std::int64_t last = 0, all = 0;
  CompareOptions options = quick();
  options.policies = {"kpool"};
  compare(small_data(1), options, [&](std::int64_t done, std::int64_t of) {
    EXPECT_EQ(done, last + 1);
    last = done;
    all = of;
  });
  EXPECT_EQ(last, 4);  // kpool twice, mean, oracle
  EXPECT_EQ(all, 4);
}

TEST(Recall, QuantisedPoolsSelectOtherTokensButFew) {
  CompareOptions options;
  options.ratios = {4};
  options.policies = {"mean"};
  const DataSet data = planted_data({1, 2, 16});
  const double exact = row_of(compare(data, options), "mean", Form::fixed).recall.value;
  options.pooled = reference::training::Width::i8;
  const double coarse = row_of(compare(data, options), "mean", Form::fixed).recall.value;
  EXPECT_NE(coarse, exact);
  EXPECT_NEAR(coarse, exact, 0.02);
}

TEST(Recall, WrongOptionsAndPoliciesThatAreAnothersAreNamed) {
  const auto refuses = [](const char* what, const auto& change) {
    CompareOptions options;
    change(options);
    try {
      validate(options, small_data(1));
      ADD_FAILURE() << what;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuses("ratio: found 3, expected a divisor of the 32", [](auto& o) { o.ratios = {3}; });
  refuses("ratio: found 0", [](auto& o) { o.ratios = {0}; });
  refuses("ratio: found none", [](auto& o) { o.ratios = {}; });
  refuses("k: found 17, expected 1 to 16", [](auto& o) { o.k = 17; });
  refuses("pools: found 3, expected 1 to 2", [](auto& o) { o.pools = 3; });
  refuses("epochs: found 0", [](auto& o) { o.epochs = 0; });
  refuses("did you mean \"kpool\"", [](auto& o) { o.policies = {"kpol"}; });
  refuses("ask for kpool", [](auto& o) { o.policies = {"kpool_weights"}; });
  refuses("ask for plain", [](auto& o) { o.policies = {"mean", "plain_raw"}; });
}

}  // namespace
}  // namespace indexpool::verify::recall
