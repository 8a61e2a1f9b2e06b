// Conversions of bf16, f16, e4m3 and e5m2: every code, every tie, and random values.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/dtype.hpp"

#include "narrow_floats.hpp"

namespace indexpool {
namespace {

std::uint32_t stored_code(const Narrow& format, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(format.dtype, bytes.data(), 0, value);
  std::uint32_t code = 0;
  std::memcpy(&code, bytes.data(), static_cast<std::size_t>(info(format.dtype).bytes));
  return code;
}

double loaded_value(const Narrow& format, std::uint32_t code) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &code, sizeof(code));
  return load_element(format.dtype, bytes.data(), 0);
}

TEST(NarrowFloat, EveryFiniteCodeHasTheValueOfItsDefinition) {
  for (const Narrow& format : narrow_formats()) {
    for (std::uint32_t code = 0; code < format.codes(); ++code) {
      if (code % format.sign() > format.largest) continue;
      const double value = value_by_definition(format, code);
      ASSERT_EQ(format.to_float(code), value) << format.name << " code " << code;
      ASSERT_EQ(std::signbit(format.to_float(code)), std::signbit(value)) << format.name << code;
      ASSERT_EQ(loaded_value(format, code), value) << format.name << " code " << code;
    }
  }
}

TEST(NarrowFloat, CodesBeyondTheLargestAreInfinityAndNaN) {
  for (const Narrow& format : narrow_formats()) {
    const bool has_infinity = format.dtype != DType::e4m3;
    for (std::uint32_t code = format.largest + 1; code < format.sign(); ++code) {
      const float value = format.to_float(code);
      const float negative = format.to_float(code | format.sign());
      if (has_infinity && code == format.largest + 1) {
        ASSERT_EQ(value, std::numeric_limits<float>::infinity()) << format.name;
        ASSERT_EQ(negative, -std::numeric_limits<float>::infinity()) << format.name;
      } else {
        ASSERT_TRUE(std::isnan(value) && std::isnan(negative)) << format.name << " code " << code;
      }
    }
  }
}

TEST(NarrowFloat, EveryFiniteCodeSurvivesTheRoundTrip) {
  for (const Narrow& format : narrow_formats()) {
    for (std::uint32_t code = 0; code < format.codes(); ++code) {
      if (code % format.sign() > format.largest) continue;
      ASSERT_EQ(format.from_float(format.to_float(code)), code) << format.name;
      ASSERT_EQ(stored_code(format, loaded_value(format, code)), code) << format.name;
    }
  }
}

TEST(NarrowFloat, EveryMidpointGoesToTheEvenNeighbour) {
  for (const Narrow& format : narrow_formats()) {
    const std::vector<double> values = ascending_values(format);
    for (std::uint32_t code = 1; code <= format.largest; ++code) {
      const double middle = (values[code - 1] + values[code]) / 2;
      const std::uint32_t even = code % 2 == 0 ? code : code - 1;
      ASSERT_EQ(format.from_float(static_cast<float>(middle)), even) << format.name << code;
      ASSERT_EQ(format.from_float(static_cast<float>(-middle)), even | format.sign());
      ASSERT_EQ(stored_code(format, middle), even) << format.name << " code " << code;
      ASSERT_EQ(stored_code(format, std::nextafter(middle, 0)), code - 1) << format.name;
      ASSERT_EQ(stored_code(format, std::nextafter(middle, HUGE_VAL)), code) << format.name;
    }
  }
}

TEST(NarrowFloat, FloatsAroundEveryTieGoToTheNearestCode) {
  for (const Narrow& format : narrow_formats()) {
    const std::vector<double> values = ascending_values(format);
    for (const float value : floats_around_ties(format)) {
      ASSERT_EQ(format.from_float(value), nearest_code(format, values, value))
          << format.name << " of " << value;
    }
  }
}

TEST(NarrowFloat, RandomFloatsGoToTheNearestCode) {
  std::mt19937 random(20260117);
  for (const Narrow& format : narrow_formats()) {
    const std::vector<double> values = ascending_values(format);
    std::uniform_real_distribution<double> exponent(-26, 18);
    for (int i = 0; i < 300'000; ++i) {
      float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (i % 2 == 1) value = static_cast<float>(std::exp2(exponent(random)));  // in every range
      if (std::isnan(value)) continue;
      ASSERT_EQ(format.from_float(value), nearest_code(format, values, value))
          << format.name << " of " << value;
    }
  }
}

TEST(NarrowFloat, OverflowSaturatesInFp8AndIsInfiniteInSixteenBits) {
  for (const Narrow& format : narrow_formats()) {
    const std::vector<double> values = ascending_values(format);
    const double limit = (values[format.largest] + values[format.largest + 1]) / 2;
    EXPECT_EQ(stored_code(format, std::nextafter(limit, 0)), format.largest) << format.name;
    EXPECT_EQ(stored_code(format, limit), format.overflow()) << format.name;
    for (const double huge : {1e38, 1e300, HUGE_VAL}) {
      EXPECT_EQ(stored_code(format, huge), format.dtype == DType::bf16 && huge == 1e38
                                               ? nearest_code(format, values, huge)
                                               : format.overflow())
          << format.name << huge;
      EXPECT_EQ(stored_code(format, -huge), stored_code(format, huge) | format.sign());
    }
  }
  EXPECT_EQ(float_from_e4m3(e4m3_from_float(1e6F)), 448);
  EXPECT_EQ(float_from_e5m2(e5m2_from_float(-HUGE_VALF)), -57344);
  EXPECT_EQ(f16_from_float(65520), 0x7c00);
}

TEST(NarrowFloat, NaNBecomesTheCanonicalNaN) {
  for (const float nan : {std::nanf(""), -std::nanf(""), std::bit_cast<float>(0x7f800001U)}) {
    EXPECT_EQ(bf16_from_float(nan), 0x7fff);
    EXPECT_EQ(f16_from_float(nan), 0x7fff);
    EXPECT_EQ(e4m3_from_float(nan), 0x7f);
    EXPECT_EQ(e5m2_from_float(nan), 0x7f);
  }
}

TEST(NarrowFloat, ADoubleIsRoundedOnceNotThroughFloat) {
  // 1 + 2^-4 is the middle of two e4m3 codes; float cannot see the 2^-40 that decides.
  const double just_above = 1 + 0x1p-4 + 0x1p-40;
  EXPECT_EQ(round_to(DType::e4m3, just_above), 1.125);
  EXPECT_EQ(e4m3_from_float(static_cast<float>(just_above)), e4m3_from_float(1.0F));
  EXPECT_EQ(round_to(DType::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1p-11 + 0x1p-50), 1 + 0x1p-10);
  EXPECT_EQ(round_to(DType::f16, 0x1p-25), 0);  // a tie with zero, which is even
  EXPECT_EQ(round_to(DType::f16, 0x1p-25 + 0x1p-77), 0x1p-24);
}

RC_GTEST_PROP(NarrowFloatLaws, RandomDoublesGoToTheNearestCode, ()) {
  const Narrow format = *rc::gen::elementOf(narrow_formats());
  const std::vector<double> values = ascending_values(format);
  for (int i = 0; i < 200; ++i) {
    const auto code = *rc::gen::inRange<std::uint32_t>(1, format.largest + 2);
    const auto tilt = *rc::gen::inRange(-3, 4);
    const double middle = (values[code - 1] + values[code]) / 2;
    const double value = middle * (1 + tilt * 0x1p-52);
    RC_ASSERT(stored_code(format, value) == nearest_code(format, values, value));
  }
}

RC_GTEST_PROP(NarrowFloatLaws, RoundingIsMonotoneIdempotentAndOdd,
              (std::uint64_t x, std::uint64_t y)) {
  const double a = std::bit_cast<double>(x);
  const double b = std::bit_cast<double>(y);
  RC_PRE(!std::isnan(a) && !std::isnan(b));
  for (const Narrow& format : narrow_formats()) {
    const double rounded = round_to(format.dtype, std::min(a, b));
    RC_ASSERT(rounded <= round_to(format.dtype, std::max(a, b)));
    RC_ASSERT(round_to(format.dtype, rounded) == rounded);
    RC_ASSERT(round_to(format.dtype, -a) == -round_to(format.dtype, a));
  }
}

}  // namespace
}  // namespace indexpool
