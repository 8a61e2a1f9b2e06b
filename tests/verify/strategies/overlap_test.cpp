// A second stream by the cost model, and predicted times of pooling.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/strategies/asynchronous.hpp"

#include "streams.hpp"

namespace indexpool::verify::strategies {
namespace {

Lane lane(double low, double time, double high, double hbm, double matrix) {
  return {{Seconds(time), Seconds(low), Seconds(high)},
          Seconds(hbm),
          Seconds(hbm * low / time),
          Seconds(matrix),
          Seconds(matrix * low / time)};
}

TEST(Overlap, WhatAsksForNothingSharedHidesBehindALongerLane) {
  const Overhead beside = beside_each_other(lane(9, 10, 12, 6, 1), lane(1, 2, 3, 0, 0));
  EXPECT_EQ(beside.value, 0);
  EXPECT_EQ(beside.low, 0);
  EXPECT_DOUBLE_EQ(beside.high, 3.0 / 9);
  const Overhead after = after_each_other(lane(9, 10, 12, 6, 1), lane(1, 2, 3, 0, 0));
  EXPECT_DOUBLE_EQ(after.value, 0.2);
  EXPECT_DOUBLE_EQ(after.low, 1.0 / 12);
  EXPECT_DOUBLE_EQ(after.high, 3.0 / 9);
}

TEST(Overlap, BytesThatBothAskOfHbmDoNotHide) {
  // 9 and 2 units of HBM in a lane of 10: one is left over.
  EXPECT_DOUBLE_EQ(beside_each_other(lane(10, 10, 10, 9, 0), lane(2, 2, 2, 2, 0)).value, 0.1);
  EXPECT_DOUBLE_EQ(beside_each_other(lane(10, 10, 10, 0, 9), lane(2, 2, 2, 0, 2)).value, 0.1);
  // The longer lane decides, even if it is the side.
  EXPECT_DOUBLE_EQ(beside_each_other(lane(10, 10, 10, 0, 0), lane(15, 15, 15, 0, 0)).value, 0.5);
}

RC_GTEST_PROP(Overlap, TwoStreamsCostNoMoreThanOneAndNoLessThanNothing, ()) {
  const auto draw = [] {
    const double time = *rc::gen::inRange(10, 1000), share = *rc::gen::inRange(0, 101) / 100.0;
    return lane(time * 0.8, time, time * 1.5, time * share, time * (1 - share));
  };
  const Lane main = draw(), side = draw();
  const Overhead one = after_each_other(main, side), two = beside_each_other(main, side);
  RC_ASSERT(two.value >= 0);
  RC_ASSERT(two.value <= one.value + 1e-12);
  RC_ASSERT(two.low <= two.value + 1e-12);
  RC_ASSERT(two.value <= two.high + 1e-12);
}

TEST(Overlap, OfFormCOnEightA100IsFiniteAndSmallerWithTwoStreams) {
  for (const step::Phase phase : {step::Phase::decode, step::Phase::prefill}) {
    OverlapOptions options;
    options.phase = phase;
    const Overlap of = overlap(options);
    EXPECT_EQ(of.layers, 11);
    EXPECT_EQ(of.rows, phase == step::Phase::decode ? 1 : 8192);
    EXPECT_GT(of.pooling.alone.time.value, 0);
    EXPECT_GT(of.layer.alone.time.value, of.pooling.alone.time.value);
    EXPECT_LT(of.two_streams.value, of.one_stream.value);
    EXPECT_LT(of.one_of_step, of.one_stream.value);
    EXPECT_LE(of.two_streams.low, of.two_streams.value);
    EXPECT_LE(of.two_streams.value, of.two_streams.high);
  }
}

TEST(Overlap, AModelWithoutAPooledFormIsRefused) {
  OverlapOptions options;
  options.model = "no-such-model";
  EXPECT_THROW(overlap(options), ConfigError);
}

TEST(Latency, MorePoolsTakeLongerAndWeightsComeOnTop) {
  PoolingLatency latency = a100();
  const PoolingShape few{"gated", 100, 4, 64, 1, 100, 64, true};
  PoolingShape many = few, bare = few;
  many.groups = many.tokens = 1'000'000;
  bare.with_weights = false;
  EXPECT_GT(latency.of(many).time, latency.of(few).time);
  EXPECT_LT(latency.of(bare).time, latency.of(few).time);
  EXPECT_LE(latency.of(few).low, latency.of(few).time);
  EXPECT_LE(latency.of(few).time, latency.of(few).high);
  EXPECT_EQ(work_of(few).size(), 3u);
  EXPECT_EQ(work_of(bare).size(), 1u);
  PoolingShape tfidf = few;
  tfidf.policy = "tfidf";
  EXPECT_EQ(work_of(tfidf).size(), 2u);
}

}  // namespace
}  // namespace indexpool::verify::strategies
