#include "indexpool/verify/faults/integer_pair.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/faults/subject.hpp"

#include "pages.hpp"

namespace indexpool::verify::faults {
namespace {

std::vector<std::byte> row(std::initializer_list<int> codes) {
  std::vector<std::byte> bytes;
  for (const int code : codes) bytes.push_back(static_cast<std::byte>(code));
  return bytes;
}

// 0x38 is 1 = 512 steps, 0xb8 is -1, 0x01 is one step, 0x7e is 448, 0x7f (NaN) counts as 480.
TEST(IntegerPair, HandWorkedRows) {
  const PageShape e4m3 = e4m3_shape(4, 1);
  const IntegerPair pair = pair_of_codes(e4m3, row({0x38, 0xb8, 0x01, 0x7e}));
  EXPECT_EQ(pair.sum, 1u + 448 * 512);
  EXPECT_EQ(pair.weighted_sum, static_cast<std::uint32_t>(512 - 2 * 512 + 3 + 4 * 448 * 512));
  EXPECT_EQ(pair_of_codes(e4m3, row({0x7f})).sum, 480u * 512);
  EXPECT_EQ(pair_of_codes(e4m3, row({0x00})), pair_of_codes(e4m3, row({0x80})));
  const PageShape i8{numeric_mode("int8"), 3, 1};
  EXPECT_EQ(pair_of_codes(i8, row({0x01, 0xff, 0x7f})),
            (IntegerPair{127, static_cast<std::uint32_t>(1 - 2 + 3 * 127)}));
}

TEST(IntegerPair, KernelsEmitIt) {
  for (const char* mode : {"vllm_fp8", "sglang_fp8", "int8"}) {
    const PageShape shape = page_shape(mode);
    const IndexerInputs inputs = draw_inputs(mode, "normal", {4 * 70 + 3}, 5);
    std::size_t compared = 0;
    for (const StoredPage& page : pages_of(inputs, run_kernels(inputs, {100, 0, 2}, 5), shape)) {
      for (std::size_t i = 0; i < page.checksums.size(); ++i, ++compared) {
        EXPECT_EQ(pair_of_codes(shape, codes_of(shape, page.bytes, static_cast<std::int64_t>(i))),
                  pair_of(page.checksums[i]))
            << mode << ", pool " << i;
      }
    }
    EXPECT_EQ(compared, 70u) << mode;
  }
}

// Folded pool by pool it is the pair of the page taken as one row.
RC_GTEST_PROP(IntegerPair, FoldsToThePairOfTheWholePage, (std::uint64_t seed)) {
  const SmallPage page = small_page(e4m3_shape(16, 6), 6, seed);
  IntegerPair folded;
  for (std::int64_t state = 0; state < 6; ++state) {
    fold(folded, pair_of_codes(page.shape, codes_of(page.shape, page.bytes, state)), page.shape,
         state);
  }
  const PageShape one_row = e4m3_shape(16 * 6, 1);
  RC_ASSERT(folded == pair_of_codes(one_row, codes_of(one_row, page.bytes, 0)));
}

// Exhaustive: every bit of every code of a page.
TEST(Faults, SingleBitFlipsInCodesAreAlwaysSeen) {
  SmallPage page = small_page(e4m3_shape(32, 4), 4, 3);
  for (std::size_t bit = 0; bit < 8 * 32 * 4; ++bit) {
    page.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(check_page(page.shape, page.bytes, page.seal) & layer_pair, 0u) << "bit " << bit;
    page.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

// Seen exactly when a value changed: +0 for -0 is no change.
RC_GTEST_PROP(Faults, AnyChangeOfOneOrTwoCodesIsSeen,
              (std::uint64_t seed, std::uint16_t where, std::uint16_t and_where, std::uint8_t code,
               std::uint8_t and_code)) {
  SmallPage page = small_page(e4m3_shape(128, 64), 64, seed % 16);
  const std::size_t codes = 128 * 64;
  const std::vector<std::byte> before = page.bytes;
  page.bytes[where % codes] = static_cast<std::byte>(code);
  page.bytes[and_where % codes] = static_cast<std::byte>(and_code);
  const auto value = [&](const std::vector<std::byte>& bytes, std::size_t at) {
    const float v = float_from_e4m3(std::to_integer<std::uint8_t>(bytes[at % codes]));
    return std::isnan(v) ? 480.0f : v;  // signs of NaN aside
  };
  const bool changed = value(before, where) != value(page.bytes, where) ||
                       value(before, and_where) != value(page.bytes, and_where);
  const bool seen = (check_page(page.shape, page.bytes, page.seal) & layer_pair) != 0;
  RC_ASSERT(seen == changed);
}

// A layer without the weighted sum must be caught missing what it misses.
TEST(Faults, ThePlainSumAloneMissesEverySwapAndTheWeightedSumNone) {
  SmallPage page = small_page(e4m3_shape(32, 4), 4, 8);
  const auto pair_of_page = [&] {
    IntegerPair pair;
    for (std::int64_t state = 0; state < 4; ++state) {
      fold(pair, pair_of_codes(page.shape, codes_of(page.shape, page.bytes, state)), page.shape,
           state);
    }
    return pair;
  };
  const IntegerPair clean = pair_of_page();
  int swaps = 0, by_sum = 0, by_weighted_sum = 0;
  for (std::size_t a = 0; a < 128; ++a) {
    for (std::size_t b = a + 1; b < 128; ++b) {
      if (page.bytes[a] == page.bytes[b]) continue;
      std::swap(page.bytes[a], page.bytes[b]);
      const IntegerPair pair = pair_of_page();
      ++swaps;
      by_sum += pair.sum != clean.sum ? 1 : 0;
      by_weighted_sum += pair.weighted_sum != clean.weighted_sum ? 1 : 0;
      std::swap(page.bytes[a], page.bytes[b]);
    }
  }
  EXPECT_GT(swaps, 7000);
  EXPECT_EQ(by_sum, 0);
  EXPECT_EQ(by_weighted_sum, swaps);
}

// 0, 1, 1, 0 become 1, 0, 0, 1 in bit 0 of every fourth code: +1 -1 -1 +1 at equal distances.
TEST(Faults, AStripeOfFourCanHideFromThePairButNotFromTheCrc) {
  SmallPage page = small_page({numeric_mode("int8"), 16, 1}, 0, 8);
  const int bits[] = {0, 1, 1, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    page.bytes[4 * i] = static_cast<std::byte>(100 + bits[i]);
  }
  const IntegerPair pair = pair_of_codes(page.shape, codes_of(page.shape, page.bytes, 0));
  append(page.seal, page.shape, page.bytes,
         {0, 0, static_cast<std::int32_t>(pair.sum), pair.weighted_sum});
  for (std::size_t i = 0; i < 4; ++i) page.bytes[4 * i] ^= std::byte{1};
  EXPECT_EQ(check_page(page.shape, page.bytes, page.seal) & (layer_pair | layer_crc),
            Alarms{layer_crc});
}

RC_GTEST_PROP(Faults, AnyChangeOfOneScaleIsSeenByThePair,
              (std::uint64_t seed, std::uint32_t bits)) {
  RC_PRE(bits != 0u);
  SmallPage page = small_page(e4m3_shape(32, 4), 3, seed);
  const std::size_t at = page.scale_at(static_cast<std::int64_t>(seed % 3));
  std::uint32_t word = 0;
  std::memcpy(&word, page.bytes.data() + at, 4);
  word ^= bits;
  std::memcpy(page.bytes.data() + at, &word, 4);
  RC_ASSERT((check_page(page.shape, page.bytes, page.seal) & layer_pair) != 0u);
}

}  // namespace
}  // namespace indexpool::verify::faults
