// Which items of a launch are looked at.
#include "indexpool/verify/measure/sample.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify::timing {
namespace {

bool holds(const std::vector<std::int64_t>& indices, std::int64_t index) {
  return std::ranges::binary_search(indices, index);
}

RC_GTEST_PROP(Samples, AreAscendingInRangeHoldTheEndsAndAreEnough, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 34);
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, 100'000);
  const auto wanted = *rc::gen::inRange<std::int64_t>(2, 20);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto indices = sampled(count, bytes, wanted, seed);
  RC_ASSERT(std::ranges::is_sorted(indices));
  RC_ASSERT(std::ranges::adjacent_find(indices) == indices.end());
  RC_ASSERT(indices.front() == 0);
  RC_ASSERT(indices.back() == count - 1);
  RC_ASSERT(std::ssize(indices) >= std::min(count, wanted));
  for (const int power : {31, 32}) {
    const std::int64_t beyond = (std::int64_t{1} << power) / bytes + 1;
    RC_ASSERT(beyond >= count || holds(indices, beyond));
  }
  RC_ASSERT(indices == sampled(count, bytes, wanted, seed));
}

TEST(Samples, OfFewItemsAreAll) {
  EXPECT_EQ(sampled(1, 4, 12, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(sampled(5, 4, 12, 1), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(Samples, HoldTheItemThatA32BitOffsetWouldMiss) {
  // 4 KB items: number 2^19 begins at byte 2^31.
  const auto indices = sampled(std::int64_t{1} << 21, 4096, 8, 1);
  EXPECT_TRUE(holds(indices, std::int64_t{1} << 19));
  EXPECT_TRUE(holds(indices, std::int64_t{1} << 20));
}

}  // namespace
}  // namespace indexpool::verify::timing
