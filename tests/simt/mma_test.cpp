// The fast emulation against a slow one of the same description, in integers.
#include "indexpool/sim/simt/mma.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/dtype.hpp"

namespace indexpool::sim::simt {
namespace {

// significand * 2^exponent; `top` is the exponent the hardware aligns by.
struct Term {
  std::int64_t significand;
  int exponent, top;
};

struct Layout {
  int mantissa, bias;
};
constexpr Layout bf16{7, 127}, f16{10, 15}, f32{23, 127}, e4m3{3, 7};

Term unpack(std::uint32_t code, const Layout& layout, int sign_bit) {
  const auto mantissa = static_cast<std::int64_t>(code & ((1u << layout.mantissa) - 1));
  const int field = static_cast<int>((code & ((1u << sign_bit) - 1)) >> layout.mantissa);
  const std::int64_t hidden = field == 0 ? 0 : std::int64_t{1} << layout.mantissa;
  const int exponent = std::max(field, 1) - layout.bias;
  const std::int64_t sign = code >> sign_bit & 1u ? -1 : 1;
  return {sign * (hidden + mantissa), exponent - layout.mantissa, exponent};
}

Term product(const Term& a, const Term& b) {
  return {a.significand * b.significand, a.exponent + b.exponent, a.top + b.top};
}

// significand * 2^exponent cut towards zero to binary32; from 2^128 on infinite, never -0.
float cut(std::int64_t significand, int exponent) {
  std::uint64_t size = static_cast<std::uint64_t>(std::abs(significand));
  while (size >= std::uint64_t{1} << 24 || (size != 0 && exponent < -149)) {
    size >>= 1;
    ++exponent;
  }
  if (size == 0) return 0.0f;
  const double value = std::ldexp(static_cast<double>(size), exponent);
  const double size_or_infinity =
      value >= 0x1p128 ? std::numeric_limits<double>::infinity() : value;
  return static_cast<float>(std::copysign(size_or_infinity, static_cast<double>(significand)));
}

// One step: align, cut, add, cut.
float step(const std::vector<Term>& terms, int fractional_bits) {
  int top = std::numeric_limits<int>::min();
  for (const Term& t : terms) {
    if (t.significand != 0) top = std::max(top, t.top);
  }
  if (top == std::numeric_limits<int>::min()) return 0.0f;
  std::int64_t sum = 0;
  const int unit = top - fractional_bits;
  for (const Term& t : terms) {
    if (t.significand == 0) continue;
    const int shift = t.exponent - unit;
    if (shift >= 0) {
      sum += t.significand << shift;
    } else if (shift > -63) {
      sum += t.significand / (std::int64_t{1} << -shift);  // towards zero
    }
  }
  return sum == 0 ? 0.0f : cut(sum, unit);
}

float slow_half(MatrixModel model, const Layout& layout, const std::uint16_t* a,
                const std::uint16_t* b, int row, int column, float c) {
  const int width = model == MatrixModel::sm80 ? 8 : 16;
  for (int first = 0; first < 16 && std::isfinite(c); first += width) {
    std::vector<Term> terms = {unpack(std::bit_cast<std::uint32_t>(c), f32, 31)};
    for (int k = first; k < first + width; ++k) {
      terms.push_back(
          product(unpack(a[row * 16 + k], layout, 15), unpack(b[k * 8 + column], layout, 15)));
    }
    c = step(terms, model == MatrixModel::sm80 ? 24 : 25);
  }
  return c;
}

float slow_e4m3(const std::uint8_t* a, const std::uint8_t* b, int row, int column, float c) {
  float sum = 0;
  for (int half = 0; half < 2; ++half) {
    std::vector<Term> terms = {unpack(std::bit_cast<std::uint32_t>(sum), f32, 31)};
    for (int k = 0; k < 32; ++k) {
      if (k % 4 / 2 != half) continue;
      Term pair[2] = {unpack(a[row * 32 + k], e4m3, 7), unpack(b[k * 8 + column], e4m3, 7)};
      for (Term& t : pair) {  // as binary16, in which every e4m3 number is normal
        if (t.significand != 0) t.top = t.exponent + std::ilogb(static_cast<double>(t.significand));
      }
      terms.push_back(product(pair[0], pair[1]));
    }
    sum = step(terms, 25);
  }
  return sum + c;
}

// 16-bit codes of finite numbers with exponent fields in a window, so that alignment matters, with
// zeros and subnormals in between.
rc::Gen<std::uint16_t> half_codes(const Layout& layout, int low, int high) {
  const int mantissa = layout.mantissa;
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(low, high), rc::gen::inRange(0, 1 << mantissa),
                     rc::gen::inRange(0, 16)),
      [mantissa](const std::tuple<int, int, int>& parts) {
        const auto [field, bits, kind] = parts;
        if (kind == 0) return std::uint16_t{0};
        const int exponent = kind == 1 ? 0 : field;
        return static_cast<std::uint16_t>((kind & 1) << 15 | exponent << mantissa | bits);
      });
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

void check_half(HalfFormat format, const Layout& layout, MatrixModel model) {
  const int fields = 1 << (15 - layout.mantissa);
  const int spread = *rc::gen::element(1, 4, 12, fields);
  const int low = *rc::gen::inRange(0, std::max(1, fields - 1 - spread));
  const auto codes = half_codes(layout, low, std::min(low + spread, fields - 1));
  const auto a = *rc::gen::container<std::vector<std::uint16_t>>(256, codes);
  const auto b = *rc::gen::container<std::vector<std::uint16_t>>(128, codes);
  const int c_field =
      std::clamp(2 * (low - layout.bias) + 127 + *rc::gen::inRange(-30, 30), 0, 254);
  std::vector<float> d(128);
  for (float& value : d) {
    const std::uint32_t bits = *rc::gen::inRange<std::uint32_t>(0, 1u << 24);
    value = std::bit_cast<float>((bits & 1u) << 31 | static_cast<std::uint32_t>(c_field) << 23 |
                                 bits >> 1);
  }
  const std::vector<float> c = d;
  multiply_add_16x8x16(model, format, a.data(), b.data(), d.data());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      const float expected = slow_half(model, layout, a.data(), b.data(), i, j, c[i * 8 + j]);
      RC_ASSERT(same_bits(d[i * 8 + j], expected));
    }
  }
}

RC_GTEST_PROP(Mma, Bf16IsTheModelBitForBit, ()) {
  check_half(HalfFormat::bf16, bf16, *rc::gen::element(MatrixModel::sm80, MatrixModel::sm90));
}

RC_GTEST_PROP(Mma, F16IsTheModelBitForBit, ()) {
  check_half(HalfFormat::f16, f16, *rc::gen::element(MatrixModel::sm80, MatrixModel::sm90));
}

RC_GTEST_PROP(Mma, E4m3IsTheModelBitForBit, ()) {
  const auto code = rc::gen::suchThat(rc::gen::arbitrary<std::uint8_t>(),
                                      [](std::uint8_t x) { return (x & 0x7f) != 0x7f; });
  const auto a = *rc::gen::container<std::vector<std::uint8_t>>(512, code);
  const auto b = *rc::gen::container<std::vector<std::uint8_t>>(256, code);
  std::vector<float> d(128);
  for (float& value : d) value = std::ldexp(static_cast<float>(*rc::gen::inRange(-1000, 1000)), -7);
  const std::vector<float> c = d;
  multiply_add_16x8x32_e4m3(a.data(), b.data(), d.data());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      RC_ASSERT(same_bits(d[i * 8 + j], slow_e4m3(a.data(), b.data(), i, j, c[i * 8 + j])));
    }
  }
}

RC_GTEST_PROP(Mma, Int8IsExact, ()) {
  const auto a =
      *rc::gen::container<std::vector<std::int8_t>>(512, rc::gen::arbitrary<std::int8_t>());
  const auto b =
      *rc::gen::container<std::vector<std::int8_t>>(256, rc::gen::arbitrary<std::int8_t>());
  const auto c =
      *rc::gen::container<std::vector<std::int32_t>>(128, rc::gen::arbitrary<std::int32_t>());
  std::vector<std::int32_t> d = c;
  multiply_add_16x8x32_s8(a.data(), b.data(), d.data());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      std::int64_t sum = c[i * 8 + j];
      for (int k = 0; k < 32; ++k) sum += std::int64_t{a[i * 32 + k]} * b[k * 8 + j];
      RC_ASSERT(d[i * 8 + j] == static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
    }
  }
}

// --- the cancellation probes of an H200, and what sm_80 answers by its description ---
float half_probe(MatrixModel model, const std::vector<float>& a, const std::vector<float>& b,
                 float c) {
  std::vector<std::uint16_t> left(256, 0), right(128, 0);
  for (std::size_t k = 0; k < a.size(); ++k) {
    left[k] = bf16_from_float(a[k]);
    right[k * 8] = bf16_from_float(b[k]);
  }
  std::vector<float> d(128, 0);
  d[0] = c;
  multiply_add_16x8x16(model, HalfFormat::bf16, left.data(), right.data(), d.data());
  return d[0];
}

TEST(Mma, HalfProbesOfHopper) {
  const float big = 0x1p27f;
  EXPECT_EQ(half_probe(MatrixModel::sm90, {0x1p13f, 2}, {0x1p14f, 7}, 0), big);
  EXPECT_EQ(half_probe(MatrixModel::sm90, {1}, {1}, 0x1.8p-24f), 1.0f);
  // 25 fractional bits: of 2^0, 2^-25 is kept and 2^-26 is not.
  EXPECT_EQ(half_probe(MatrixModel::sm90, {1, -1}, {1, 1}, 0x1p-25f), 0x1p-25f);
  EXPECT_EQ(half_probe(MatrixModel::sm90, {1, -1}, {1, 1}, 0x1p-26f), 0.0f);
  EXPECT_EQ(half_probe(MatrixModel::sm90, {1, -1}, {1, 1}, -0x1.8p-25f), -0x1p-25f);
}

TEST(Mma, HalfProbesOfAmpereKeepOneBitLessAndStepTwice) {
  EXPECT_EQ(half_probe(MatrixModel::sm80, {1, -1}, {1, 1}, 0x1p-24f), 0x1p-24f);
  EXPECT_EQ(half_probe(MatrixModel::sm80, {1, -1}, {1, 1}, 0x1p-25f), 0.0f);
  // 1 in the first step, -1 in the second: what the first step lost to 1 stays lost.
  std::vector<float> a(16, 0), b(16, 1);
  a[0] = 1, a[1] = 0x1p-24f, a[8] = -1;
  EXPECT_EQ(half_probe(MatrixModel::sm80, a, b, 0), 0.0f);
  EXPECT_EQ(half_probe(MatrixModel::sm90, a, b, 0), 0x1p-24f);
}

float e4m3_probe(const std::vector<float>& a, const std::vector<float>& b, float c) {
  std::vector<std::uint8_t> left(512, 0), right(256, 0);
  for (std::size_t k = 0; k < a.size(); ++k) {
    left[k] = e4m3_from_float(a[k]);
    right[k * 8] = e4m3_from_float(b[k]);
  }
  std::vector<float> d(128, 0);
  d[0] = c;
  multiply_add_16x8x32_e4m3(left.data(), right.data(), d.data());
  return d[0];
}

TEST(Mma, E4m3ProbesOfHopper) {
  EXPECT_EQ(e4m3_probe({2}, {7}, 0x1p27f), 0x1p27f + 16);
  // Within a half 2^-25 of the largest is kept, across halves 2^-23: 2^8 * 2^8 against 2^-9.
  EXPECT_EQ(e4m3_probe({0x1p8f, -0x1p8f, 0}, {0x1p8f, 0x1p8f, 0}, 0x1p-9f), 0x1p-9f);
  EXPECT_EQ(e4m3_probe({0x1p8f, -0x1p8f}, {0x1p8f, 0x1p8f}, 0), 0.0f);
  std::vector<float> a(5, 0), b(5, 0);
  a[0] = 0x1p8f, b[0] = 0x1p8f, a[1] = 0x1p-9f, b[1] = 1, a[4] = -0x1p8f, b[4] = 0x1p8f;
  EXPECT_EQ(e4m3_probe(a, b, 0), 0x1p-9f);  // all in the first half: bytes 0, 1 and 4
  a[2] = a[4], b[2] = b[4], a[4] = 0;
  EXPECT_EQ(e4m3_probe(a, b, 0), 0.0f);  // 2^16 + 2^-9 is cut to binary32 between the halves
}

TEST(Mma, SpecialValuesStayInTheirElements) {
  std::vector<std::uint16_t> a(256, bf16_from_float(1)), b(128, bf16_from_float(1));
  std::vector<float> d(128, 1);
  a[3 * 16 + 5] = 0x7f80;  // +infinity in row 3
  b[2 * 8 + 6] = 0x7fc0;   // NaN in column 6
  a[9 * 16 + 2] = 0;       // 0 * NaN is NaN
  b[5 * 8 + 1] = 0;        // infinity * 0 is NaN
  d[12 * 8 + 0] = -std::numeric_limits<float>::infinity();
  multiply_add_16x8x16(MatrixModel::sm90, HalfFormat::bf16, a.data(), b.data(), d.data());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      const float value = d[i * 8 + j];
      if (j == 6 || (i == 3 && j == 1)) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0x7fffffffu);
      } else if (i == 3) {
        EXPECT_EQ(value, std::numeric_limits<float>::infinity());
      } else if (i == 12 && j == 0) {
        EXPECT_EQ(value, -std::numeric_limits<float>::infinity());
      } else {
        EXPECT_EQ(value, 17.0f - (j == 1) - (i == 9)) << i << ' ' << j;
      }
    }
  }
}

}  // namespace
}  // namespace indexpool::sim::simt
