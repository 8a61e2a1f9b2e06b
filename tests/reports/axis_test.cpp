#include "indexpool/reports/axis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::reports {
namespace {

RC_GTEST_PROP(LogAxis, IsMonotoneAndStaysInside, (int a, int b)) {
  const LogAxis axis{1e-6, 1e3, 20, 500};
  const double low = std::exp(std::min(a, b) % 30), high = std::exp(std::max(a, b) % 30);
  RC_ASSERT((low <= high) == (axis.at(low) <= axis.at(high)) || axis.at(low) == axis.at(high));
  RC_ASSERT(axis.at(low) >= 20 && axis.at(low) <= 500);
}

RC_GTEST_PROP(LogAxis, DecadeAxisHoldsItsValues, (int a, int b)) {
  const double low = std::pow(10.0, std::min(a, b) % 12), high = low * (1 + std::abs(b % 1000));
  const LogAxis axis = decade_axis(low, high, 0, 100);
  RC_ASSERT(axis.low <= low * (1 + 1e-6));
  RC_ASSERT(axis.high >= high * (1 - 1e-6));
  RC_ASSERT(decades(axis).size() >= 2u);
}

TEST(LogAxis, EqualRatiosAreEqualDistances) {
  const LogAxis axis{1, 1000, 0, 300};
  EXPECT_DOUBLE_EQ(axis.at(1), 0);
  EXPECT_NEAR(axis.at(10), 100, 1e-9);
  EXPECT_NEAR(axis.at(100), 200, 1e-9);
  EXPECT_DOUBLE_EQ(axis.at(1000), 300);
}

TEST(LogAxis, OddValuesGoToTheEnds) {
  const LogAxis axis{1, 1000, 0, 300};
  EXPECT_DOUBLE_EQ(axis.at(0), 0);
  EXPECT_DOUBLE_EQ(axis.at(-5), 0);
  EXPECT_DOUBLE_EQ(axis.at(std::numeric_limits<double>::infinity()), 300);
  EXPECT_DOUBLE_EQ(axis.at(std::numeric_limits<double>::quiet_NaN()), 300);
}

TEST(LogAxis, TokenTicksArePowersOfFour) {
  EXPECT_EQ(token_ticks({4096, 65536, 0, 1}), (std::vector<double>{4096, 16384, 65536}));
}

RC_GTEST_PROP(Spread, KeepsItsGapsAndOrder, (std::vector<double> wish)) {
  wish.resize(std::min<std::size_t>(wish.size(), 10));
  for (double& w : wish) w = std::isfinite(w) ? std::fmod(std::abs(w), 400.0) : 0;
  const std::vector<double> place = spread(wish, 15, 0, 400);  // ten labels fit
  for (std::size_t i = 0; i < place.size(); ++i) {
    RC_ASSERT(place[i] >= -1e-9 && place[i] <= 400 + 1e-9);
    for (std::size_t j = 0; j < i; ++j) {
      RC_ASSERT(std::abs(place[i] - place[j]) >= 15 - 1e-9);
      if (wish[i] < wish[j]) RC_ASSERT(place[i] < place[j]);
    }
  }
}

TEST(Spread, LeavesLabelsWithRoomWhereTheyAre) {
  EXPECT_EQ(spread({10, 100, 50}, 15, 0, 400), (std::vector<double>{10, 100, 50}));
}

}  // namespace
}  // namespace indexpool::reports
