#include "indexpool/reports/quantity.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace indexpool::reports {
namespace {

TEST(Quantity, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1 kB");
  EXPECT_EQ(format_bytes(34'603'008), "34.6 MB");
  EXPECT_EQ(format_bytes(1.5e12), "1.5 TB");
  EXPECT_EQ(format_seconds(19.84e-6), "19.8 µs");
  EXPECT_EQ(format_seconds(0.5e-9), "0.5 ns");
  EXPECT_EQ(format_seconds(61), "61 s");
}

TEST(Quantity, RoundsIntoTheNextUnit) {
  EXPECT_EQ(format_bytes(999'400), "999 kB");
  EXPECT_EQ(format_bytes(999'600), "1 MB");
  EXPECT_EQ(format_seconds(999.9e-6), "1 ms");
}

TEST(Quantity, IntervalsShareAUnit) {
  EXPECT_EQ(format_interval(Seconds(900e-6), Seconds(1.25e-3)), "0.9–1.25 ms");
}

TEST(Quantity, TokensArePowersOf1024OrPlain) {
  EXPECT_EQ(format_tokens(4096), "4K");
  EXPECT_EQ(format_tokens(1 << 20), "1M");
  EXPECT_EQ(format_tokens(10 << 20), "10M");
  EXPECT_EQ(format_tokens(1'000'000), "1 000 000");
  EXPECT_EQ(format_tokens(259), "259");
}

TEST(Quantity, CountsAreGrouped) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1 000");
  EXPECT_EQ(format_count(-1234567), "-1 234 567");
}

TEST(Quantity, UtilisationKeepsSmallAndOddValues) {
  EXPECT_EQ(format_utilisation(0), "exact");
  EXPECT_EQ(format_utilisation(0.2149), "0.215");
  EXPECT_EQ(format_utilisation(1.2e-5), "1.2e-05");
  EXPECT_EQ(format_utilisation(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(format_utilisation(std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace indexpool::reports
