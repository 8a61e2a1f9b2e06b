#include "indexpool/model/units.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "expect_error.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

TEST(Units, RatesDivideAmountsIntoTimes) {
  EXPECT_EQ((Bytes(1'000) / BytesPerSecond(500)).value, 2);
  EXPECT_EQ((Flop(10) / FlopPerSecond(4)).value, 2.5);
  EXPECT_EQ((Bytes(1'000) / Seconds(4)).value, 250);
  EXPECT_EQ(Seconds(6) / Seconds(4), 1.5);
  EXPECT_EQ(3 * Bytes(5) + Bytes(1) - Bytes(6), Bytes(10));
  EXPECT_LT(Seconds(1), Seconds(2));
}

TEST(CheckedProduct, HoldsUpToSixtyThreeBits) {
  EXPECT_EQ(checked_product(largest, 1, "x"), largest);
  EXPECT_EQ(checked_product(std::int64_t{1} << 31, std::int64_t{1} << 31, "x"),
            std::int64_t{1} << 62);
  expect_parts(config_error_of([] {
                 checked_product(std::int64_t{1} << 32, std::int64_t{1} << 31, "batch * tokens");
               }),
               {"batch * tokens", "4294967296 x 2147483648", "63 bits"});
}

TEST(CheckedSum, HoldsUpToSixtyThreeBits) {
  EXPECT_EQ(checked_sum(largest, 0, "x"), largest);
  EXPECT_EQ(checked_sum(largest, smallest, "x"), -1);
  expect_parts(config_error_of([] { checked_sum(largest, 1, "tokens"); }), {"tokens", "+ 1"});
  expect_parts(config_error_of([] { checked_sum(smallest, -1, "tokens"); }), {"tokens"});
}

// A wide integer decides what fits.
__extension__ using Wide = __int128;

bool fits(Wide value) { return value >= smallest && value <= largest; }

template <class Checked>
bool agrees(Checked checked, Wide exact) {
  try {
    return checked() == exact;
  } catch (const ConfigError&) {
    return !fits(exact);
  }
}

RC_GTEST_PROP(CheckedLaws, AreExactOrRefuse, (std::int64_t a, std::int64_t b)) {
  for (const std::int64_t right : {b, b >> 31, b >> 33, b >> 60}) {
    RC_ASSERT(agrees([&] { return checked_product(a, right, "x"); }, Wide{a} * right));
    RC_ASSERT(agrees([&] { return checked_sum(a, right, "x"); }, Wide{a} + right));
  }
}

}  // namespace
}  // namespace indexpool
