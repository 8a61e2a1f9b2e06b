#include "indexpool/verify/faults/wilson.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify::faults {
namespace {

void expect_interval(std::int64_t successes, std::int64_t trials, double low, double high) {
  const Share share = wilson(successes, trials);
  EXPECT_NEAR(share.low, low, 5e-5) << successes << " of " << trials;
  EXPECT_NEAR(share.high, high, 5e-5) << successes << " of " << trials;
  EXPECT_DOUBLE_EQ(share.value, static_cast<double>(successes) / static_cast<double>(trials));
}

// With z^2 = 3.8415: all of n succeed: n / (n + z^2); 5 of 10: 1/2 -+ z/2 sqrt(1/(10 + z^2)).
TEST(Wilson, HandWorkedIntervals) {
  expect_interval(10, 10, 0.72247, 1);
  expect_interval(0, 10, 0, 0.27753);
  expect_interval(5, 10, 0.23659, 0.76341);
  expect_interval(999, 1000, 0.99436, 0.99982);
  expect_interval(10000, 10000, 0.99962, 1);
}

TEST(Wilson, NothingTriedSaysNothing) {
  const Share share = wilson(0, 0);
  EXPECT_EQ(share.low, 0);
  EXPECT_EQ(share.high, 1);
}

TEST(Wilson, NoAlarmInNRunsBoundsTheRateByThreeOverN) {
  EXPECT_DOUBLE_EQ(rate_bound(0, 200'000), 1.5e-5);
  EXPECT_DOUBLE_EQ(rate_bound(0, 2), 1);
  EXPECT_DOUBLE_EQ(rate_bound(0, 0), 1);
  EXPECT_NEAR(rate_bound(1, 1000), 1 - 0.99436, 5e-5);
}

RC_GTEST_PROP(Wilson, ContainsTheShareAndMirrors, (std::uint16_t a, std::uint16_t b)) {
  const std::int64_t trials = std::int64_t{a} + b;
  RC_PRE(trials > 0);
  const Share share = wilson(a, trials), mirrored = wilson(b, trials);
  RC_ASSERT(0 <= share.low && share.low <= share.value);
  RC_ASSERT(share.value <= share.high && share.high <= 1);
  RC_ASSERT(std::abs(share.low - (1 - mirrored.high)) < 1e-12);
}

}  // namespace
}  // namespace indexpool::verify::faults
