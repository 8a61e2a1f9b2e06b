#include "indexpool/verify/faults/seal.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/faults/crc32c.hpp"

#include "pages.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr Alarms sums = layer_pair | layer_crc;

RC_GTEST_PROP(PageSeal, CleanPagesRaiseNoAlarmWhateverFollowsThem, (std::uint64_t seed)) {
  SmallPage page = small_page(e4m3_shape(32, 8), static_cast<std::int64_t>(seed % 9), seed);
  RC_ASSERT(check_page(page.shape, page.bytes, page.seal) == 0u);
  for (std::int64_t state = page.seal.states; state < 8; ++state) {
    page.bytes[page.code_at(state, 3)] ^= std::byte{0xff};
    page.bytes[page.scale_at(state)] ^= std::byte{0xff};
  }
  RC_ASSERT(check_page(page.shape, page.bytes, page.seal) == 0u);
}

// The CRC is of codes and scales as the states came, by definition in one go.
TEST(PageSeal, GrowsToTheSumsOfTheWholePage) {
  const SmallPage page = small_page(e4m3_shape(32, 8), 5, 77);
  std::vector<std::byte> stream;
  for (std::int64_t state = 0; state < 5; ++state) {
    const Bytes codes = codes_of(page.shape, page.bytes, state);
    const Bytes scale = scale_of(page.shape, page.bytes, state);
    stream.insert(stream.end(), codes.begin(), codes.end());
    stream.insert(stream.end(), scale.begin(), scale.end());
  }
  EXPECT_EQ(page.seal.states, 5u);
  EXPECT_EQ(page.seal.crc, crc32c_by_table(stream));
}

// Exhaustive: HD of CRC32C is at least 6 at this length, so 1 and 2 bits always show.
TEST(PageSeal, TheCrcSeesEveryFaultOfOneOrTwoBitsInASmallPage) {
  SmallPage page = small_page(e4m3_shape(32, 2), 2, 5);
  const std::size_t bits = page.bytes.size() * 8;
  ASSERT_EQ(bits, 2u * (32 + 4) * 8);
  const auto flip = [&](std::size_t bit) { page.bytes[bit / 8] ^= std::byte{1} << (bit % 8); };
  std::int64_t faults = 0, seen = 0;
  for (std::size_t a = 0; a < bits; ++a) {
    flip(a);
    ++faults;
    seen += (check_page(page.shape, page.bytes, page.seal) & layer_crc) != 0 ? 1 : 0;
    for (std::size_t b = a + 1; b < bits; ++b) {
      flip(b);
      ++faults;
      seen += (check_page(page.shape, page.bytes, page.seal) & layer_crc) != 0 ? 1 : 0;
      flip(b);
    }
    flip(a);
  }
  EXPECT_EQ(faults, 576 + 576 * 575 / 2);
  EXPECT_EQ(seen, faults);
}

TEST(PageSeal, TwoPoolsThatTradePlacesAreSeen) {
  SmallPage page = small_page(e4m3_shape(32, 8), 8, 6);
  std::swap_ranges(page.bytes.begin(), page.bytes.begin() + 32, page.bytes.begin() + 32 * 5);
  std::swap_ranges(page.bytes.begin() + page.shape.scales_at(),
                   page.bytes.begin() + page.shape.scales_at() + 4,
                   page.bytes.begin() + page.shape.scales_at() + 4 * 5);
  EXPECT_EQ(check_page(page.shape, page.bytes, page.seal) & sums, sums);
}

// What happens before the fold is in the CRC; only the kernel's own sums are older.
TEST(PageSeal, AFaultBeforeTheFoldIsSeenByThePairAndNotByTheCrc) {
  for (const NumericMode& mode : numeric_modes()) {
    SmallPage page = small_page({mode, 32, 8}, 8, 6);
    std::vector<std::size_t> places = {page.code_at(4, 9)};
    if (mode.quantised()) places.push_back(page.scale_at(4) + 3);
    for (const std::size_t at : places) {
      page.bytes[at] ^= std::byte{0x08};
      PageSeal seal;
      for (const kernels::PoolChecksum& checksum : page.checksums) {
        append(seal, page.shape, page.bytes, checksum);
      }
      EXPECT_EQ(check_page(page.shape, page.bytes, seal) & sums, Alarms{layer_pair})
          << mode.name << ", byte " << at;
      page.bytes[at] ^= std::byte{0x08};
    }
  }
}

RC_GTEST_PROP(PageSeal, AnyFlipInASealIsSeen, (std::uint64_t seed, std::uint8_t where)) {
  const SmallPage page = small_page(e4m3_shape(32, 8), 5, seed);
  PageSeal seal = page.seal;
  auto bytes = std::as_writable_bytes(std::span(&seal, 1));
  bytes[where / 8 % 16] ^= std::byte{1} << (where % 8);
  RC_ASSERT((check_page(page.shape, page.bytes, seal) & sums) != 0u);
}

TEST(PageSeal, FoldingChecksEachPoolByItsOwnLayers) {
  SmallPage page = small_page(e4m3_shape(128, 2), 2, 6);
  const LinearLink link(page.shape);
  const auto alarms = [&] {
    return check_pool(page.shape, link, codes_of(page.shape, page.bytes, 1),
                      scale_of(page.shape, page.bytes, 1), page.checksums[1]) &
           ~Alarms{layer_linear};  // these sums belong to no kernel
  };
  EXPECT_EQ(alarms(), 0u);
  page.bytes[page.scale_at(1) + 1] ^= std::byte{1};  // no power of two any more
  EXPECT_EQ(alarms(), Alarms{layer_form | layer_pair});
  page.bytes[page.scale_at(1) + 1] ^= std::byte{1};
  page.bytes[page.code_at(1, 5)] ^= std::byte{1};
  EXPECT_EQ(alarms(), Alarms{layer_pair});
}

}  // namespace
}  // namespace indexpool::verify::faults
