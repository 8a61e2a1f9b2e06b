// Recall, F1 and attention kept, worked by hand.
#include "indexpool/verify/recall/kept.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "small_data.hpp"

namespace indexpool::verify::recall {
namespace {

// Four tokens of one channel, one query of 1: keys 4 -4 | 3 2.
DataSet by_hand(std::int64_t k) {
  DataSet data;
  data.name = "by hand";
  data.geometry = {4, 1, 1, 1, 1, 1};
  data.k = k;
  data.unit = "sequences";
  reference::training::Sequence sequence;
  sequence.keys = sequence.features = {4, -4, 3, 2};
  sequence.queries = {1};
  sequence.head_weights = {1};
  sequence.ages = sequence.access_terms = {0, 0, 0, 0};
  data.learnt_from = data.held_out = {sequence};
  return data;
}

CompareOptions in_pairs() {
  CompareOptions options;
  options.ratios = {2};
  options.policies = {"mean", "last", "plain", "block_max", "best_pools"};
  return options;
}

TEST(Kept, FourTokensInTwoPools) {
  const double all = std::exp(4) + std::exp(-4) + std::exp(3) + std::exp(2);
  const double first = (std::exp(4) + std::exp(-4)) / all, second = 1 - first;
  const auto rows = compare(by_hand(2), in_pairs());
  // The best are tokens 0 and 2. Means 0 and 2.5, last keys -4 and 2, two thirds and one third
  // 4/3 and 8/3: all take the second pool. Maxima 4 and 3 take the first.
  for (const char* policy : {"mean", "last", "plain"}) {
    const Row& row = row_of(rows, policy, Form::fixed, 2);
    EXPECT_EQ(row.selected, 2);
    EXPECT_EQ(row.recall.value, 0.5) << policy;
    EXPECT_EQ(row.f1.value, 0.5) << policy;
    EXPECT_NEAR(row.mass.value, second, 1e-15) << policy;
    EXPECT_NEAR(row.oracle_mass, (std::exp(4) + std::exp(3)) / all, 1e-15);
  }
  EXPECT_NEAR(row_of(rows, "block_max", Form::unpooled, 2).mass.value, first, 1e-15);
  EXPECT_EQ(row_of(rows, "best_pools", Form::unpooled, 2).recall.value, 0.5);
}

TEST(Kept, AWholePoolIsMoreThanTheOneTokenThatWasAskedFor) {
  const auto rows = compare(by_hand(1), in_pairs());
  const Row &mean = row_of(rows, "mean", Form::fixed, 2),
            &largest = row_of(rows, "block_max", Form::unpooled, 2);
  EXPECT_EQ(mean.selected, 2);
  EXPECT_EQ(mean.recall.value, 0);
  EXPECT_EQ(mean.f1.value, 0);
  EXPECT_EQ(largest.recall.value, 1);
  EXPECT_NEAR(largest.f1.value, 2.0 / 3, 1e-15);  // precision one half
  EXPECT_EQ(largest.over_mean.value, 1);
}

TEST(Kept, FewerSelectedThanAskedForCostsRecallNotPrecision) {
  Unpooled of;
  of.tokens = 4;
  of.best = {{0, 1, 3}};
  of.attention = {0.5, 0.2, 0.2, 0.1};
  const std::vector<std::int64_t> selected = {1}, none;
  EXPECT_NEAR(kept(of, 0, selected).recall, 1.0 / 3, 1e-15);
  EXPECT_NEAR(kept(of, 0, selected).f1, 0.5, 1e-15);
  EXPECT_EQ(kept(of, 0, selected).mass, 0.2);
  EXPECT_EQ(kept(of, 0, none).f1, 0);
}

TEST(Kept, ReluMakesTiesAndTheyAreCounted) {
  DataSet data = by_hand(2);
  data.held_out[0].keys = data.held_out[0].features = {-1, -2, -3, 5};
  EXPECT_EQ(unpooled(data, data.held_out[0], 2).ties, 1);  // 5, then zeros
  EXPECT_EQ(unpooled(data, data.held_out[0], 2).best[0], (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(unpooled(data, data.held_out[0], 1).ties, 0);
  data.relu = false;
  EXPECT_EQ(unpooled(data, data.held_out[0], 2).ties, 0);
}

TEST(Kept, AttentionIsTheMeanOfTheHeadsSoftmaxes) {
  DataSet data = by_hand(1);
  data.geometry.heads = 2;
  data.held_out[0].queries = {1, -1};
  data.held_out[0].head_weights = {1, 1};
  const Unpooled of = unpooled(data, data.held_out[0], 1);
  const double up = std::exp(4) + std::exp(-4) + std::exp(3) + std::exp(2);
  const double down = std::exp(4) + std::exp(-4) + std::exp(-3) + std::exp(-2);
  EXPECT_NEAR(of.attention[0], (std::exp(4) / up + std::exp(-4) / down) / 2, 1e-15);
  EXPECT_NEAR(of.attention[1], (std::exp(-4) / up + std::exp(4) / down) / 2, 1e-15);
}

}  // namespace
}  // namespace indexpool::verify::recall
