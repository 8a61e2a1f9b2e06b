#include "indexpool/verify/faults/fault_model.hpp"

#include <bit>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::faults {
namespace {

struct Struck {
  std::vector<std::byte> before, after;
  std::vector<Touched> touched;

  Struck(const char* model, std::size_t words, std::uint64_t seed) : before(4 * words) {
    const Random bytes(seed, 1);
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] = static_cast<std::byte>(bytes.bits(static_cast<std::int64_t>(i)));
    }
    after = before;
    find_fault_model(model).strike(after, Random(seed, 2), 8 * static_cast<std::int64_t>(seed % 99),
                                   touched);
  }
  int flipped_bits() const {
    int bits = 0;
    for (const Touched& word : touched) {
      bits += std::popcount(word.before ^ word_at(after, word.offset));
    }
    return bits;
  }
};

RC_GTEST_PROP(FaultModel, OneAndTwoBitsOfOneWord, (std::uint64_t seed, std::uint8_t words)) {
  const Struck one("single", words + 1u, seed), two("double", words + 1u, seed);
  RC_ASSERT(one.touched.size() == 1u && one.flipped_bits() == 1);
  RC_ASSERT(two.touched.size() == 1u && two.flipped_bits() == 2);
}

RC_GTEST_PROP(FaultModel, AZeroWordIsZero, (std::uint64_t seed, std::uint8_t words)) {
  const Struck zero("zero", words + 1u, seed);
  RC_ASSERT(zero.touched.size() == 1u);
  RC_ASSERT(word_at(zero.after, zero.touched[0].offset) == 0u);
}

// 32 lanes (fewer in a smaller region), a constant power-of-two period, the same bit in each.
RC_GTEST_PROP(FaultModel, AStripeIsOneWordPerLane, (std::uint64_t seed, std::uint16_t size)) {
  const std::size_t words = size % 3000 + 1u;
  const Struck stripe("stripe", words, seed);
  const std::size_t lanes = std::min<std::size_t>(32, words);
  RC_ASSERT(stripe.touched.size() == lanes);
  std::set<std::uint32_t> masks;
  for (const Touched& word : stripe.touched) {
    RC_ASSERT(word.offset + 4 <= stripe.after.size());
    masks.insert(word.before ^ word_at(stripe.after, word.offset));
  }
  RC_ASSERT(masks.size() == 1u && std::popcount(*masks.begin()) == 1);
  if (lanes < 2) return;
  const std::size_t period = stripe.touched[1].offset - stripe.touched[0].offset;
  RC_ASSERT(std::has_single_bit(period));
  for (std::size_t lane = 1; lane < lanes; ++lane) {
    RC_ASSERT(stripe.touched[lane].offset - stripe.touched[lane - 1].offset == period);
  }
}

RC_GTEST_PROP(FaultModel, UndoPutsEveryByteBack, (std::uint64_t seed, std::uint16_t size)) {
  for (const FaultModel& model : fault_models()) {
    Struck struck(model.name.data(), size % 3000 + 1u, seed);
    RC_ASSERT(static_cast<std::int64_t>(struck.touched.size()) <= 32);
    undo(struck.after, struck.touched);
    RC_ASSERT(struck.after == struck.before);
  }
}

TEST(FaultModel, EveryWordAndEveryBitIsStruck) {
  std::set<std::size_t> words;
  std::set<std::uint32_t> bits;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Struck one("single", 16, seed);
    words.insert(one.touched[0].offset);
    bits.insert(one.touched[0].before ^ word_at(one.after, one.touched[0].offset));
  }
  EXPECT_EQ(words.size(), 16u);
  EXPECT_EQ(bits.size(), 32u);
}

TEST(FaultModel, UnknownNamesListNearOnes) {
  try {
    find_fault_model("singel");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("single"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace indexpool::verify::faults
