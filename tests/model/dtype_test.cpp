// The dtype table, integers, and elements in memory.
#include "indexpool/model/dtype.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "narrow_floats.hpp"

namespace indexpool {
namespace {

constexpr std::array all_dtypes = {DType::f64,  DType::f32, DType::bf16, DType::f16, DType::e4m3,
                                   DType::e5m2, DType::i64, DType::i32,  DType::i8,  DType::u8};

TEST(DTypeTable, EveryNameLeadsBackToItsDType) {
  for (const DType dtype : all_dtypes) {
    EXPECT_EQ(info(dtype).dtype, dtype);
    EXPECT_EQ(dtype_from_name(info(dtype).name), dtype);
    EXPECT_EQ(dtype_from_safetensors_name(info(dtype).safetensors_name), dtype);
  }
  EXPECT_EQ(dtype_from_name("fp8"), std::nullopt);
  EXPECT_EQ(dtype_from_name("F32"), std::nullopt);
  EXPECT_EQ(dtype_from_safetensors_name("bf16"), std::nullopt);
}

TEST(DTypeTable, LimitsAreThoseOfTheCodes) {
  for (const Narrow& format : narrow_formats()) {
    const DTypeInfo& row = info(format.dtype);
    EXPECT_EQ(row.largest, value_by_definition(format, format.largest)) << row.name;
    EXPECT_EQ(row.smallest_subnormal, value_by_definition(format, 1)) << row.name;
    const std::uint32_t one = format.from_float(1);
    EXPECT_EQ(row.unit_roundoff, (value_by_definition(format, one + 1) - 1) / 2) << row.name;
  }
  using Double = std::numeric_limits<double>;
  using Float = std::numeric_limits<float>;
  EXPECT_EQ(info(DType::f64).largest, Double::max());
  EXPECT_EQ(info(DType::f64).smallest_subnormal, Double::denorm_min());
  EXPECT_EQ(info(DType::f64).unit_roundoff, Double::epsilon() / 2);
  EXPECT_EQ(info(DType::f32).largest, Float::max());
  EXPECT_EQ(info(DType::f32).smallest_subnormal, Float::denorm_min());
  EXPECT_EQ(info(DType::f32).unit_roundoff, Float::epsilon() / 2);
}

TEST(Int8, RoundsToNearestEvenAndNeverGives128) {
  struct Row {
    float value;
    int expected;
  };
  const Row rows[] = {{0, 0},         {0.5F, 0},        {1.5F, 2},         {2.5F, 2},
                      {-0.5F, 0},     {-1.5F, -2},      {-2.5F, -2},       {0.50001F, 1},
                      {126.5F, 126},  {127, 127},       {127.49F, 127},    {127.5F, 127},
                      {1e30F, 127},   {-127, -127},     {-127.5F, -127},   {-128, -127},
                      {-1e30F, -127}, {HUGE_VALF, 127}, {-HUGE_VALF, -127}};
  for (const Row& row : rows) EXPECT_EQ(i8_from_float(row.value), row.expected) << row.value;
  EXPECT_EQ(i8_from_float(std::nanf("")), 0);
}

RC_GTEST_PROP(Int8Laws, IsTheNearestCode, ()) {
  const float value = static_cast<float>(*rc::gen::inRange(-150'000, 150'000)) / 1000;
  const int code = i8_from_float(value);
  for (int other = -127; other <= 127; ++other) {
    RC_ASSERT(std::fabs(value - code) <= std::fabs(value - other));
  }
}

TEST(Integers, SaturateAndTakeNaNAsZero) {
  EXPECT_EQ(round_to(DType::u8, -3), 0);
  EXPECT_EQ(round_to(DType::u8, 255.5), 255);
  EXPECT_EQ(round_to(DType::u8, 2.5), 2);
  EXPECT_EQ(round_to(DType::i32, 1e12), 2147483647);
  EXPECT_EQ(round_to(DType::i32, -1e12), -2147483648.0);
  EXPECT_EQ(round_to(DType::i32, std::nan("")), 0);
  std::int64_t stored = 0;
  store_element(DType::i64, reinterpret_cast<std::byte*>(&stored), 0, 1e30);
  EXPECT_EQ(stored, std::numeric_limits<std::int64_t>::max());
  store_element(DType::i64, reinterpret_cast<std::byte*>(&stored), 0, -1e30);
  EXPECT_EQ(stored, std::numeric_limits<std::int64_t>::min());
}

TEST(Elements, AreReadAtTheirIndexAndLeaveTheirNeighboursAlone) {
  for (const DType dtype : all_dtypes) {
    const auto bytes = static_cast<std::size_t>(info(dtype).bytes);
    std::array<std::byte, 40> memory;
    memory.fill(std::byte{0x5a});
    store_element(dtype, memory.data(), 2, 3);
    EXPECT_EQ(load_element(dtype, memory.data(), 2), 3) << info(dtype).name;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (i >= 2 * bytes && i < 3 * bytes) continue;
      EXPECT_EQ(memory[i], std::byte{0x5a}) << info(dtype).name << " byte " << i;
    }
  }
}

RC_GTEST_PROP(ElementLaws, F64AndF32KeepTheirBits, (double d, float f)) {
  std::array<std::byte, 8> memory{};
  store_element(DType::f64, memory.data(), 0, d);
  RC_ASSERT(std::memcmp(memory.data(), &d, sizeof(d)) == 0);
  store_element(DType::f32, memory.data(), 0, f);
  RC_ASSERT(std::memcmp(memory.data(), &f, sizeof(f)) == 0);
}

}  // namespace
}  // namespace indexpool
