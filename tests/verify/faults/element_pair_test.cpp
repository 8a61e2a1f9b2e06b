// The exact pair of caches that are not quantised: 16-bit elements, and f32 ones as two halves.
#include <algorithm>
#include <bit>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/checks/exact_sums.hpp"
#include "indexpool/verify/faults/subject.hpp"

#include "pages.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr const char* element_modes[] = {"bf16", "hf_bf16", "hf_f16", "hf_f32"};

PageShape shape_of(const char* mode, std::int64_t channels, std::int64_t states) {
  return {numeric_mode(mode), channels, states};
}

IntegerPair pair_of_row(const PageShape& shape, std::initializer_list<double> values) {
  std::vector<std::byte> row(static_cast<std::size_t>(shape.code_bytes()));
  std::int64_t c = 0;
  for (const double value : values) store_element(shape.mode.cache, row.data(), c++, value);
  return pair_of_pool(shape, row, {});
}

// 1 is 0x3f80 in bf16, 0x3c00 in f16, 0x3f800000 in f32; turned left by one, -1 is one more.
// h(0) = 1, h(1) = 0x14e28b73; low halves of two channels weigh 5 times that.
TEST(ElementPair, HandWorkedRows) {
  constexpr std::uint32_t h1 = 0x14e28b73;
  EXPECT_EQ(pair_of_row(shape_of("bf16", 2, 1), {1, -1}),
            (IntegerPair{0x7f00 + 0x7f01, 0x7f00 + h1 * 0x7f01}));
  EXPECT_EQ(pair_of_row(shape_of("hf_f16", 2, 1), {-1, 1}),
            (IntegerPair{0x7801 + 0x7800, 0x7801 + h1 * 0x7800}));
  EXPECT_EQ(pair_of_row(shape_of("hf_f32", 2, 1), {1, -1}),
            (IntegerPair{0x7f00 + 0x7f00 + 1, 0x7f00 + h1 * 0x7f00 + 5 * h1}));
  // The last bit of 1 + 2^-23 is bit 1 of the low half.
  EXPECT_EQ(pair_of_row(shape_of("hf_f32", 2, 1), {1 + 0x1p-23, 0}),
            (IntegerPair{0x7f00 + 2, 0x7f00 + 5 * 2}));
  EXPECT_EQ(pair_of_row(shape_of("hf_f32", 2, 1), {0, 0}), IntegerPair{});
}

// Units in the order they lie in: what one counts in its page's second sum. One step of a 16-bit
// unit is the sign, of an f32 element's halves the sign (low) and bit 15 (high).
std::vector<std::uint32_t> weights_in_page(const PageShape& shape) {
  const bool halves = shape.mode.cache == DType::f32;
  const std::size_t element = halves ? 4 : 2;
  const std::vector<std::size_t> steps =
      halves ? std::vector<std::size_t>{31, 15} : std::vector<std::size_t>{15};
  std::vector<std::uint32_t> weights;
  std::vector<std::byte> row(static_cast<std::size_t>(shape.code_bytes()));
  for (std::int64_t state = 0; state < shape.states; ++state) {
    for (std::size_t at = 0; at < row.size(); at += element) {
      for (const std::size_t bit : steps) {
        row[at + bit / 8] ^= std::byte{1} << (bit % 8);
        IntegerPair page;
        fold(page, pair_of_pool(shape, row, {}), shape, state);
        EXPECT_EQ(page.sum, 1u);
        weights.push_back(page.weighted_sum);
        row[at + bit / 8] ^= std::byte{1} << (bit % 8);
      }
    }
  }
  return weights;
}

// Exhaustive over all pairs of units of a page: those that change by d and -d, |d| < 2^16, are seen
// when the largest power of two in the difference of their weights stays below 2^17.
TEST(ElementPair, NoTwoUnitsOfAPageStandForEachOther) {
  for (const char* mode : {"bf16", "hf_f32"}) {
    for (const std::int64_t channels : {32, 64, 128}) {
      const std::vector<std::uint32_t> weights = weights_in_page(shape_of(mode, channels, 64));
      ASSERT_EQ(weights.size(), static_cast<std::size_t>(64 * channels) * (mode[0] == 'h' ? 2 : 1));
      std::uint32_t alike = 0;  // low bits that two weights share
      for (std::size_t a = 0; a < weights.size(); ++a) {
        ASSERT_EQ(weights[a] % 2, 1u) << mode << ", unit " << a;
        for (std::size_t b = a + 1; b < weights.size(); ++b) {
          const std::uint32_t difference = weights[a] ^ weights[b];
          alike = std::max(alike, difference & -difference);
        }
      }
      EXPECT_EQ(alike, weights.size()) << mode << ", " << channels;  // all the odd residues
      EXPECT_LT(15 + std::countr_zero(alike), 32) << mode << ", " << channels;
    }
  }
}

TEST(ElementPair, NoTwoUnitsOfALargeHeadStandForEachOther) {
  for (std::int64_t head = 8; head <= largest_summed_head; head *= 2) {
    for (const char* mode : {"hf_f16", "hf_f32"}) {
      const std::vector<std::uint32_t> weights = weights_in_page(shape_of(mode, head, 1));
      std::set<std::uint32_t> residues;
      for (const std::uint32_t weight : weights) {
        residues.insert(weight % static_cast<std::uint32_t>(2 * weights.size()));
      }
      EXPECT_EQ(residues.size(), weights.size()) << mode << ", " << head;
    }
  }
}

// Exhaustive: every bit and every two bits of a small page, two signs among them.
TEST(Faults, OneAndTwoBitsOfElementsAreAlwaysSeen) {
  for (const char* mode : element_modes) {
    SmallPage page = small_page(shape_of(mode, 8, 2), 2, 3);
    const IntegerPair clean = page.pair_of_page(2);
    const std::size_t bits = 8 * page.bytes.size();
    const auto flip = [&](std::size_t bit) { page.bytes[bit / 8] ^= std::byte{1} << (bit % 8); };
    for (std::size_t a = 0; a < bits; ++a) {
      flip(a);
      ASSERT_NE(page.pair_of_page(2).sum, clean.sum) << mode << ", bit " << a;
      for (std::size_t b = a + 1; b < bits; ++b) {
        flip(b);
        ASSERT_NE(page.pair_of_page(2), clean) << mode << ", bits " << a << " and " << b;
        flip(b);
      }
      flip(a);
    }
  }
}

// Seen exactly when a bit changed.
RC_GTEST_PROP(Faults, AnyChangeOfTwo16BitUnitsIsSeen,
              (std::uint64_t seed, std::uint16_t where, std::uint16_t and_where, std::uint16_t bits,
               std::uint16_t and_bits)) {
  SmallPage page = small_page(shape_of(element_modes[seed % 3], 128, 64), 64, seed % 16);
  const std::vector<std::byte> before = page.bytes;
  const std::size_t elements = before.size() / 2;
  std::memcpy(page.bytes.data() + 2 * (where % elements), &bits, 2);
  std::memcpy(page.bytes.data() + 2 * (and_where % elements), &and_bits, 2);
  const bool seen = (check_page(page.shape, page.bytes, page.seal) & layer_pair) != 0;
  RC_ASSERT(seen == (page.bytes != before));
}

RC_GTEST_PROP(Faults, AnyChangeOfAnF32ElementIsSeen,
              (std::uint64_t seed, std::uint16_t where, std::uint32_t bits)) {
  SmallPage page = small_page(shape_of("hf_f32", 128, 64), 64, seed % 16);
  const std::vector<std::byte> before = page.bytes;
  std::memcpy(page.bytes.data() + 4 * (where % (before.size() / 4)), &bits, 4);
  const bool seen = (check_page(page.shape, page.bytes, page.seal) & layer_pair) != 0;
  RC_ASSERT(seen == (page.bytes != before));
}

// The halves of an element are told apart: what one loses and the other gains.
RC_GTEST_PROP(Faults, HalvesThatMakeUpForEachOtherAreSeen,
              (std::uint64_t seed, std::uint8_t channel, std::uint16_t low, std::uint16_t d)) {
  RC_PRE(d != 0);
  const PageShape shape = shape_of("hf_f32", 128, 1);
  SmallPage page = small_page(shape, 1, seed);
  const auto write = [&](std::uint32_t high_half, std::uint32_t low_half) {
    const std::uint32_t bits = std::rotr(high_half << 16 | low_half, 1);
    std::memcpy(page.bytes.data() + page.code_at(0, channel % 128), &bits, 4);
    return page.pair_of_state(0);
  };
  const std::uint32_t step = d % 0x8000u, base = low % 0x8000u;
  const IntegerPair before = write(0x8000, base), after = write(0x8000 - step, base + step);
  RC_ASSERT(before.sum == after.sum);
  RC_ASSERT(step == 0 || before.weighted_sum != after.weighted_sum);
}

TEST(Faults, ThePlainSumAloneMissesEverySwapOfElementsAndTheWeightedSumNone) {
  for (const char* mode : element_modes) {
    const PageShape shape = shape_of(mode, 32, 4);
    SmallPage page = small_page(shape, 4, 8);
    const IntegerPair clean = page.pair_of_page(4);
    const auto width = static_cast<std::ptrdiff_t>(info(shape.mode.cache).bytes);
    int swaps = 0;
    for (std::ptrdiff_t a = 0; a < 128; ++a) {
      for (std::ptrdiff_t b = a + 1; b < 128; ++b) {
        const auto first = page.bytes.begin() + width * a, second = page.bytes.begin() + width * b;
        if (std::equal(first, first + width, second)) continue;
        std::swap_ranges(first, first + width, second);
        const IntegerPair pair = page.pair_of_page(4);
        std::swap_ranges(first, first + width, second);
        ++swaps;
        ASSERT_EQ(pair.sum, clean.sum) << mode;
        ASSERT_NE(pair.weighted_sum, clean.weighted_sum) << mode << ": " << a << " and " << b;
      }
    }
    EXPECT_GT(swaps, 8000) << mode;
  }
}

// Signs of half of the channels in a pattern: four at equal distances, +1 -1 -1 +1.
TEST(Faults, SignsOfFourElementsAtEqualDistancesAreSeen) {
  for (const char* mode : element_modes) {
    EXPECT_NE(pair_of_row(shape_of(mode, 16, 1), {1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, 1}),
              pair_of_row(shape_of(mode, 16, 1), {-1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, -1}))
        << mode;
  }
}

}  // namespace
}  // namespace indexpool::verify::faults
