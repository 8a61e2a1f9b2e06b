#include "indexpool/verify/faults/integer_pair.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/checks/exact_sums.hpp"
#include "indexpool/verify/faults/subject.hpp"

#include "pages.hpp"

namespace indexpool::verify::faults {
namespace {

std::vector<std::byte> row(std::initializer_list<int> codes) {
  std::vector<std::byte> bytes;
  for (const int code : codes) bytes.push_back(static_cast<std::byte>(code));
  return bytes;
}

// m of all zero bits is 0, so that a scale of 0 leaves the codes alone in the sum.
const std::vector<std::byte> no_scale(4);

// 0x38 is 1 = 512 steps, 0xb8 is -1, 0x01 is one step, 0x7e is 448, 0x7f (NaN) counts as 480.
// m(1) = 0x514e28b7 makes h(1) = 16 m(1) + 3 = 0x14e28b73, h(8) = 2^12 m(1) + 17 = 0xe28b7011.
TEST(IntegerPair, HandWorkedRows) {
  const PageShape e4m3 = e4m3_shape(9, 1);
  const auto codes = row({0x38, 0xb8, 0, 0, 0x7e, 0, 0, 0, 0x01});
  const IntegerPair pair = pair_of_pool(e4m3, codes, no_scale);
  EXPECT_EQ(pair.sum, 1u + 448 * 512);
  const std::uint32_t h4 = 16 * scale_term(4) + 9;
  EXPECT_EQ(pair.weighted_sum, 512u - 0x14e28b73u * 512 + h4 * 448 * 512 + 0xe28b7011u);
  const PageShape one = e4m3_shape(1, 1);
  EXPECT_EQ(pair_of_pool(one, row({0x7f}), no_scale).sum, 480u * 512);
  EXPECT_EQ(pair_of_pool(one, row({0x00}), no_scale), pair_of_pool(one, row({0x80}), no_scale));
  EXPECT_EQ(pair_of_pool(one, row({0x00}), row({1, 0, 0, 0})), (IntegerPair{0x514e28b7u, 0}));
  const PageShape i8{numeric_mode("int8"), 2, 1};
  EXPECT_EQ(pair_of_pool(i8, row({0xff, 0x7f}), no_scale),
            (IntegerPair{126, 0x14e28b73u * 127 - 1}));
}

TEST(IntegerPair, KernelsEmitIt) {
  for (const NumericMode& each : numeric_modes()) {
    const std::string& mode = each.name;
    const PageShape shape = page_shape(mode);
    const IndexerInputs inputs = draw_inputs(mode, "normal", {4 * 70 + 3}, 5);
    std::size_t compared = 0;
    for (const StoredPage& page : pages_of(inputs, run_kernels(inputs, {100, 0, 2}, 5), shape)) {
      for (std::size_t i = 0; i < page.checksums.size(); ++i, ++compared) {
        const auto state = static_cast<std::int64_t>(i);
        EXPECT_EQ(pair_of_pool(shape, codes_of(shape, page.bytes, state),
                               scale_of(shape, page.bytes, state)),
                  pair_of(page.checksums[i]))
            << mode << ", pool " << i;
      }
    }
    EXPECT_EQ(compared, 70u) << mode;
  }
}

// What a code counts in its page's second sum.
std::uint32_t weight_in_page(const PageShape& shape, std::int64_t state, std::int64_t channel) {
  std::vector<std::byte> codes(static_cast<std::size_t>(shape.head_dim));
  codes[static_cast<std::size_t>(channel)] = std::byte{0x01};  // one step
  IntegerPair page;
  fold(page, pair_of_pool(shape, codes, no_scale), shape, state);
  return page.weighted_sum;
}

// Exhaustive over all pairs of codes of a page: those that change by d and -d, |d| < 2^19, are seen
// when the largest power of two in the difference of their weights stays below 2^14.
TEST(IntegerPair, NoTwoCodesOfAPageStandForEachOther) {
  for (const std::int64_t channels : {32, 64, 128}) {
    const PageShape shape = e4m3_shape(channels, 64);
    std::vector<std::uint32_t> weights;
    for (std::int64_t state = 0; state < shape.states; ++state) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        weights.push_back(weight_in_page(shape, state, channel));
        ASSERT_EQ(weights.back() % 2, 1u) << "state " << state << ", channel " << channel;
      }
    }
    std::uint32_t alike = 0;  // low bits that two weights share
    for (std::size_t a = 0; a < weights.size(); ++a) {
      for (std::size_t b = a + 1; b < weights.size(); ++b) {
        const std::uint32_t difference = weights[a] ^ weights[b];
        alike = std::max(alike, difference & -difference);
      }
    }
    EXPECT_EQ(alike, static_cast<std::uint32_t>(channels * shape.states)) << channels;
    EXPECT_LT(18 + std::countr_zero(alike), 32) << channels;
  }
}

TEST(IntegerPair, NoTwoCodesOfALargeHeadStandForEachOther) {
  for (std::int64_t head = 8; head <= largest_summed_head; head *= 2) {
    std::set<std::uint32_t> residues;
    for (const std::uint32_t weight : code_weights(head)) {
      EXPECT_EQ(weight % 2, 1u);
      residues.insert(weight % static_cast<std::uint32_t>(2 * head));
    }
    EXPECT_EQ(residues.size(), static_cast<std::size_t>(head));
  }
  EXPECT_THROW(code_weights(largest_summed_head + 1), InternalError);
}

// A pool's pair is folded without its codes: the page's is what the definition says.
RC_GTEST_PROP(IntegerPair, FoldsToThePairOfTheWholePage, (std::uint64_t seed)) {
  const SmallPage page = small_page(e4m3_shape(16, 6), 6, seed);
  IntegerPair expected;
  for (std::int64_t state = 0; state < 6; ++state) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, page.bytes.data() + page.scale_at(state), 4);
    expected.sum += scale_term(bits);
    expected.weighted_sum += static_cast<std::uint32_t>(32 * state) * scale_term(bits);
    for (std::int64_t c = 0; c < 16; ++c) {
      const float value =
          float_from_e4m3(std::to_integer<std::uint8_t>(page.bytes[page.code_at(state, c)]));
      const auto steps = static_cast<std::uint32_t>(static_cast<std::int32_t>(value * 512));
      expected.sum += steps;
      expected.weighted_sum += weight_in_page(page.shape, state, c) * steps;
    }
  }
  RC_ASSERT(page.pair_of_page(6) == expected);
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
  const IntegerPair clean = page.pair_of_page(4);
  int swaps = 0, by_sum = 0, by_weighted_sum = 0;
  for (std::size_t a = 0; a < 128; ++a) {
    for (std::size_t b = a + 1; b < 128; ++b) {
      if (page.bytes[a] == page.bytes[b]) continue;
      std::swap(page.bytes[a], page.bytes[b]);
      const IntegerPair pair = page.pair_of_page(4);
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

// What one bit does to codes that all have it set or not: +2^bit or -2^bit. Signs that a rotated
// outlier leaves follow a Walsh function, +1 and -1 by the parity of c & mask.
std::uint32_t by_walsh(std::int64_t head, std::int64_t first, std::int64_t step,
                       std::int64_t mask) {
  const auto weights = code_weights(head);
  std::uint32_t sum = 0;
  for (std::int64_t lane = 0, c = first; lane < 32 && c < head; ++lane, c += step) {
    const std::uint32_t weight = weights[static_cast<std::size_t>(c)];
    sum += std::popcount(static_cast<std::uint64_t>(c & mask)) % 2 == 0 ? weight : 0 - weight;
  }
  return sum;
}

// Exhaustive: a stripe of a bit through int8 codes, one a word, in every pattern of signs that
// leaves the first sum alone. Linear weights let every pattern of two and more bits through.
// Through signs of elements, one or two a word, all bits of the sum are left.
TEST(Faults, StripesThroughPatternsOfSignsAreSeenInEveryBit) {
  for (std::int64_t head = 32; head <= 1024; head *= 2) {
    std::int64_t patterns = 0;
    for (std::int64_t step = 1; step < head; step *= 2) {
      const std::int64_t lanes = std::min<std::int64_t>(32, head / step);
      for (std::int64_t first = 0; first < head; ++first) {
        if (first / step % lanes != 0) continue;  // the same channels from another lane
        for (std::int64_t pattern = 1; pattern < lanes; ++pattern, ++patterns) {
          const std::uint32_t sum = by_walsh(head, first, step, pattern * step);
          ASSERT_NE(step < 4 ? sum : sum << 7, 0u)
              << head << " channels from " << first << " by " << step << ", pattern " << pattern;
        }
      }
    }
    EXPECT_GE(patterns, 2 * head - 8) << head;
  }
}

// 32 codes of a pool, signs by chance: those that leave the first sum alone, whatever the bit.
TEST(Faults, StripesThroughRandomSignsAreSeen) {
  const auto weights = code_weights(128);
  const Random random(1, 77);
  std::int64_t even = 0, hidden = 0;
  for (std::int64_t trial = 0; trial < 2'000'000; ++trial) {
    const std::uint64_t signs = random.bits(trial) >> 32;
    if (std::popcount(signs) != 16) continue;
    ++even;
    std::uint32_t sum = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t weight = weights[4 * lane];
      sum += (signs >> lane & 1) != 0 ? weight : 0 - weight;
    }
    hidden += sum << 7 == 0 ? 1 : 0;
  }
  EXPECT_GT(even, 200'000);
  EXPECT_LE(hidden, 2);  // 1 in 2^25 of them: 0.01 expected
}

// 0, 1, 1, 0 become 1, 0, 0, 1 in bit 0 of every fourth code: +1 -1 -1 +1 at equal distances, which
// weights linear in the channel do not see.
TEST(Faults, AStripeOfFourAtEqualDistancesIsSeen) {
  SmallPage page = small_page({numeric_mode("int8"), 16, 1}, 0, 8);
  const int bits[] = {0, 1, 1, 0};
  for (std::size_t i = 0; i < 4; ++i) page.bytes[4 * i] = static_cast<std::byte>(100 + bits[i]);
  const IntegerPair before = page.pair_of_state(0);
  for (std::size_t i = 0; i < 4; ++i) page.bytes[4 * i] ^= std::byte{1};
  EXPECT_EQ(page.pair_of_state(0).sum, before.sum);
  EXPECT_NE(page.pair_of_state(0).weighted_sum, before.weighted_sum);
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

// Whatever the code and the scale, and whatever states they are in: where both change so that the
// first sum stays, the weights tell them apart.
RC_GTEST_PROP(Faults, AScaleThatMakesUpForACodeIsSeen, (std::uint64_t seed, std::uint8_t where)) {
  const SmallPage page = small_page(e4m3_shape(32, 4), 4, seed);
  const std::int64_t state = where % 4, other = where / 4 % 4, channel = where / 16;
  const auto code = std::to_integer<std::uint8_t>(page.bytes[page.code_at(state, channel)]);
  const auto steps = static_cast<std::int32_t>(512 * float_from_e4m3(code));
  // The code becomes zero, and the scale's share of the first sum `steps` more.
  const auto d = static_cast<std::uint32_t>(steps);
  const std::uint32_t by_code = 0 - d * weight_in_page(page.shape, state, channel);
  IntegerPair by_scale;
  fold(by_scale, {d, 0}, page.shape, other);
  RC_ASSERT(by_scale.sum == d);
  RC_ASSERT(by_scale.weighted_sum + by_code != 0u);
}

// Exhaustive over the scales of a power-of-two mode: two that trade places in a page.
TEST(Faults, PowerOfTwoScalesThatTradePlacesAreSeenByThePair) {
  const PageShape shape = e4m3_shape(128, 64);
  for (std::uint32_t a = 1; a < 255; ++a) {
    for (std::uint32_t b = 1; b < a; ++b) {
      const std::uint32_t d = scale_term(a << 23) - scale_term(b << 23);
      for (std::int64_t apart = 1; apart < shape.states; apart *= 2) {
        IntegerPair shift;
        fold(shift, {d, 0}, shape, apart);
        ASSERT_NE(shift.weighted_sum, 0u) << a << " and " << b << ", " << apart << " states apart";
      }
    }
  }
}

}  // namespace
}  // namespace indexpool::verify::faults
