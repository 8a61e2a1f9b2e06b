// Rounding written from the formats' definitions against the bit manipulation of the model layer.
#include "indexpool/reference/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace indexpool::reference {
namespace {

constexpr DType formats[] = {DType::f32,  DType::bf16, DType::f16,
                             DType::e4m3, DType::e5m2, DType::i8};

// All values a format of 8 or 16 bits has, ascending, without infinities.
std::vector<double> values_of(DType dtype) {
  std::vector<double> result;
  const int bytes = info(dtype).bytes;
  for (std::uint32_t code = 0; code < (1U << (8 * bytes)); ++code) {
    const double value = load_element(dtype, reinterpret_cast<const std::byte*>(&code), 0);
    if (std::isfinite(value)) result.push_back(value);
  }
  std::ranges::sort(result);
  return result;
}

TEST(Rounding, LeavesEveryStoredNumberAlone) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    for (const double value : values_of(dtype)) {
      ASSERT_EQ(round_to_format(value, format_of(dtype)), value) << info(dtype).name;
    }
  }
}

TEST(Rounding, AgreesWithTheModelAtMidpointsAndBesideThem) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::i8}) {
    auto values = values_of(dtype);
    if (dtype == DType::i8) values.erase(values.begin());  // -128 is never produced
    for (std::size_t i = 1; i < values.size(); ++i) {
      const double middle = values[i - 1] + (values[i] - values[i - 1]) / 2;
      for (const double x :
           {middle, std::nextafter(middle, -HUGE_VAL), std::nextafter(middle, HUGE_VAL)}) {
        ASSERT_EQ(round_to_format(x, format_of(dtype)), round_to(dtype, x))
            << info(dtype).name << " " << x;
      }
    }
  }
}

RC_GTEST_PROP(Rounding, AgreesWithTheModelAnywhere, (std::uint64_t bits)) {
  double x = 0;
  std::memcpy(&x, &bits, sizeof x);
  if (!std::isfinite(x)) return;
  const double folded = std::ldexp(x, -std::ilogb(x == 0 ? 1 : x) + *rc::gen::inRange(-160, 140));
  for (const DType dtype : formats) {
    RC_ASSERT(round_to_format(folded, format_of(dtype)) == round_to(dtype, folded));
  }
}

RC_GTEST_PROP(Rounding, IsTheSameInBinary128, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const double x = std::ldexp(std::normal_distribution<double>()(random),
                              std::uniform_int_distribution<int>(-140, 120)(random));
  for (const DType dtype : formats) {
    const Format format = format_of(dtype);
    RC_ASSERT(to_double(round_to_format(Quad(x), format)) == round_to_format(x, format));
  }
}

TEST(Rounding, OfBinary128BreaksTiesThatDoubleCannotSee) {
  const Quad above = Quad(1) + Quad(0x1p-9) + Quad(0x1p-80);  // just above a bf16 midpoint at 1
  EXPECT_EQ(to_double(round_to_format(Quad(Quad(1) + Quad(0x1p-8)), format_of(DType::bf16))), 1.0);
  EXPECT_EQ(to_double(round_to_format(Quad(Quad(1) + Quad(0x1p-8) + Quad(0x1p-80)),
                                      format_of(DType::bf16))),
            1.0 + 0x1p-7);
  EXPECT_EQ(double_below(above), 1 + 0x1p-9);
  EXPECT_EQ(double_above(above), std::nextafter(1 + 0x1p-9, 2.0));
}

TEST(Rounding, LowestBitIsTheLargestPowerOfTwoDividingANumber) {
  EXPECT_EQ(lowest_bit(1), 0);
  EXPECT_EQ(lowest_bit(-6), 1);
  EXPECT_EQ(lowest_bit(0.75), -2);
  EXPECT_EQ(lowest_bit(448), 6);
  EXPECT_EQ(lowest_bit(0x1p-149), -149);
  EXPECT_EQ(lowest_bit(1 + 0x1p-52), -52);
  EXPECT_EQ(lowest_bit(0), no_bits);
}

}  // namespace
}  // namespace indexpool::reference
