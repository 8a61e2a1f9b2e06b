// What each strategy decides, by itself.
#include "indexpool/verify/strategies/settings.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::strategies {
namespace {

std::vector<double> random_vectors(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(*rc::gen::inRange(-1000, 1001) / 100.0);
  return values;
}

// Consecutive and without holes; what is left is shorter than `longest`.
void expect_partition(const std::vector<Segment>& segments, std::int64_t tokens,
                      std::int64_t longest) {
  std::int64_t next = 0;
  for (const Segment& segment : segments) {
    RC_ASSERT(segment.first == next);
    RC_ASSERT(segment.count >= 1);
    RC_ASSERT(segment.count <= longest);
    next = segment.end();
  }
  RC_ASSERT(next <= tokens);
  RC_ASSERT(tokens - next < longest);
}

RC_GTEST_PROP(Ratio, CompleteGroupsAndATailTakeCeilOfTokensOverRatioPlaces, ()) {
  const RatioSettings ratio{*rc::gen::inRange<std::int64_t>(1, 17)};
  const std::int64_t tokens = *rc::gen::inRange<std::int64_t>(0, 500);
  const auto segments = segments_of(ratio, tokens);
  expect_partition(segments, tokens, ratio.vectors);
  const std::int64_t tail = tokens - (segments.empty() ? 0 : segments.back().end());
  RC_ASSERT(slots_of(ratio, tokens) == std::ssize(segments) + (tail > 0 ? 1 : 0));
}

RC_GTEST_PROP(Adaptive, GroupsPartitionTheTokensWhateverTheKeys, ()) {
  const std::int64_t dim = *rc::gen::inRange<std::int64_t>(1, 5);
  const std::int64_t tokens = *rc::gen::inRange<std::int64_t>(0, 60);
  const auto keys = random_vectors(tokens * dim);
  AdaptiveSettings adaptive{true, *rc::gen::inRange(0, 101) / 100.0,
                            *rc::gen::inRange(0, 101) / 100.0};
  const auto segments = segments_of(adaptive, keys, dim, tokens);
  expect_partition(segments, tokens, adaptive_block);
  for (const Segment& segment : segments)
    RC_ASSERT(segment.count == 2 || segment.count == 4 || segment.count == 8);
}

RC_GTEST_PROP(Adaptive, WhatIsPooledStaysWhenTokensFollow, ()) {
  const std::int64_t tokens = *rc::gen::inRange<std::int64_t>(8, 60);
  const auto keys = random_vectors(tokens * 2);
  const AdaptiveSettings adaptive{true};
  const auto all = segments_of(adaptive, keys, 2, tokens);
  const auto before = segments_of(adaptive, keys, 2, *rc::gen::inRange<std::int64_t>(0, tokens));
  RC_ASSERT(before.size() <= all.size());
  RC_ASSERT(std::equal(before.begin(), before.end(), all.begin()));
}

RC_GTEST_PROP(Adaptive, SpreadIsWithinZeroAndOneAndBlindToScale, ()) {
  auto vectors = random_vectors(24);
  const double spread = relative_spread(vectors, 8, 3);
  RC_ASSERT(spread >= 0);
  RC_ASSERT(spread <= 1 + 1e-12);
  for (double& x : vectors) x *= -3;
  RC_ASSERT(std::abs(relative_spread(vectors, 8, 3) - spread) < 1e-12);
}

TEST(Adaptive, EqualKeysArePooledEightToOneAndOppositeOnesTwoToOne) {
  const AdaptiveSettings adaptive{true, 0.4, 0.85};
  const std::vector<double> equal(16, 3.0);
  EXPECT_EQ(segments_of(adaptive, equal, 1, 16), (std::vector<Segment>{{0, 8}, {8, 8}}));
  // Mean 0: spread 1.
  std::vector<double> opposite = {1, -1, 1, -1, 1, -1, 1, -1};
  EXPECT_EQ(segments_of(adaptive, opposite, 1, 8),
            (std::vector<Segment>{{0, 2}, {2, 2}, {4, 2}, {6, 2}}));
  // Two calm halves that differ: mean 0 over all eight, spread 0 within each.
  std::vector<double> halves = {1, 1, 1, 1, -1, -1, -1, -1};
  EXPECT_EQ(segments_of(adaptive, halves, 1, 8), (std::vector<Segment>{{0, 4}, {4, 4}}));
  EXPECT_DOUBLE_EQ(relative_spread(std::vector<double>{3, 1}, 2, 1), std::sqrt(2.0 / 10));
  EXPECT_EQ(relative_spread(std::vector<double>(8, 0.0), 8, 1), 0);
}

RC_GTEST_PROP(Frequency, EveryOneStepIsEveryStepAndEveryNStepsIsOneInN, ()) {
  const std::int64_t step = *rc::gen::inRange<std::int64_t>(0, 1000);
  const std::int64_t n = *rc::gen::inRange<std::int64_t>(1, 20);
  RC_ASSERT(weights_due({0}, step));
  RC_ASSERT(weights_due({1}, step));
  RC_ASSERT(!shares_layers({0}));
  RC_ASSERT(shares_layers({1}));
  std::int64_t due = 0;
  for (std::int64_t s = step; s < step + n; ++s) due += weights_due({n}, s) ? 1 : 0;
  RC_ASSERT(due == 1);
}

TEST(Incremental, PoolsAgainOnlyBeyondTheThreshold) {
  const std::vector<double> before = {1, 2, 3, 4};
  std::vector<double> now = {1, 2.25, 3, 3.5};
  EXPECT_EQ(largest_change(now, before), 0.5);
  EXPECT_TRUE(must_pool({0.25}, now, before));
  EXPECT_FALSE(must_pool({0.5}, now, before));
  EXPECT_FALSE(must_pool({0}, before, before));
  EXPECT_TRUE(must_pool({-1}, before, before));
  now = before;
  now[0] = std::nextafter(1.0, 2.0);
  EXPECT_TRUE(must_pool({0}, now, before));
}

TEST(Precision, RecentPoolsAreWideAndOldOnesNarrow) {
  const PrecisionSettings recent{PrecisionRule::recent, DType::f16, DType::i8, 8};
  EXPECT_EQ(format_of(recent, {0, 4}, 12, 1, 1), DType::i8);
  EXPECT_EQ(format_of(recent, {4, 4}, 12, 1, 1), DType::f16);
  EXPECT_EQ(format_of(recent, {4, 4}, 15, 1, 1), DType::f16);
  EXPECT_EQ(format_of(recent, {4, 4}, 16, 1, 1), DType::i8);
  const PrecisionSettings norm{PrecisionRule::norm, DType::f16, DType::e4m3, 0, 0.5};
  EXPECT_EQ(format_of(norm, {0, 4}, 4, 2, 4), DType::f16);
  EXPECT_EQ(format_of(norm, {0, 4}, 4, 1.9, 4), DType::e4m3);
  EXPECT_EQ(pool_bytes(DType::f16, 128), 256);
  EXPECT_EQ(pool_bytes(DType::e4m3, 128), 132);
  EXPECT_EQ(pool_bytes(DType::i8, 128), 132);
}

RC_GTEST_PROP(Precision, APoolOnlyEverGrowsNarrower, ()) {
  const PrecisionSettings recent{PrecisionRule::recent, DType::f16, DType::i8,
                                 *rc::gen::inRange<std::int64_t>(0, 50)};
  const Segment segment{*rc::gen::inRange<std::int64_t>(0, 50), 4};
  bool narrow = false;
  for (std::int64_t tokens = segment.end(); tokens < 150; ++tokens) {
    const bool now = format_of(recent, segment, tokens, 1, 1) == DType::i8;
    RC_ASSERT(now || !narrow);
    narrow = now;
  }
  RC_ASSERT(narrow);
}

TEST(Short, IsOffBelowTheLengthAndOnFromItOn) {
  EXPECT_TRUE(pooling_off({10'000}, 9'999));
  EXPECT_FALSE(pooling_off({10'000}, 10'000));
  EXPECT_FALSE(pooling_off({}, 1));
}

TEST(Edge, TakesHalfAMillionTokensAndNotOneMore) {
  const EdgeSettings edge{true, published_edge_tokens, 1};
  EXPECT_NO_THROW(require_edge_length(edge, 524'288));
  try {
    require_edge_length(edge, 524'289);
    FAIL() << "one token more was accepted";
  } catch (const ConfigError& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("found 524289 tokens, expected at most 524288"),
              std::string::npos)
        << refusal.what();
  }
}

RC_GTEST_PROP(Edge, WeightsOfEightBitsAreWithinHalfACodeOfTheirShare, ()) {
  std::vector<double> weights;
  const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, 17);
  for (std::int64_t i = 0; i < count; ++i) weights.push_back(*rc::gen::inRange(0, 1001) / 1000.0);
  const double largest = *std::max_element(weights.begin(), weights.end());
  const auto codes = weights_of_8_bits(weights);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    RC_ASSERT(codes[i] == std::round(codes[i]));
    RC_ASSERT(codes[i] >= 0);
    RC_ASSERT(codes[i] <= 127);
    // In f32, so a tie may fall either way.
    if (largest > 0)
      RC_ASSERT(std::abs(codes[i] - weights[i] / largest * 127) <= 0.5 + 127 * 0x1p-23);
  }
}

TEST(Edge, TheArticlesFixedWeightsByHand) {
  EXPECT_EQ(weights_of_8_bits({0.4, 0.3, 0.2, 0.1}), (std::vector<double>{127, 95, 64, 32}));
  EXPECT_EQ(weights_of_8_bits({0, 0}), (std::vector<double>{0, 0}));
}

TEST(Settings, SizesThatNoStrategyHasAreRefused) {
  Settings settings;
  settings.ratio.vectors = 17;
  EXPECT_THROW(validate(settings), ConfigError);
  settings = {};
  settings.edge.late_steps = 2;
  EXPECT_THROW(validate(settings), ConfigError);
  settings = {};
  settings.frequency.steps = -1;
  EXPECT_THROW(validate(settings), ConfigError);
  EXPECT_NO_THROW(validate(Settings{}));
}

}  // namespace
}  // namespace indexpool::verify::strategies
