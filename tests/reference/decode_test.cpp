// Pools through the tail ring: any split into chunks, decode steps and drafts gives each pool its
// own tokens, as long as the ring is long enough.
#include "indexpool/reference/decode.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::reference {
namespace {

std::vector<std::vector<std::int64_t>> own_tokens(std::int64_t length, std::int64_t kpool) {
  std::vector<std::vector<std::int64_t>> pools;
  for (std::int64_t p = 0; p < length / kpool; ++p) {
    pools.emplace_back();
    for (std::int64_t j = 0; j < kpool; ++j) pools.back().push_back(p * kpool + j);
  }
  return pools;
}

// Chunks of any size, then decode steps of 1 + drafts tokens that keep any number.
std::vector<CacheStep> any_schedule(std::int64_t length, std::int64_t drafts) {
  std::vector<CacheStep> steps;
  std::int64_t position = 0;
  const auto prefill = *rc::gen::inRange<std::int64_t>(0, length + 1);
  while (position < prefill) {
    const auto chunk = *rc::gen::inRange<std::int64_t>(1, prefill - position + 1);
    steps.push_back({chunk, chunk, false});
    position += chunk;
  }
  while (position < length) {
    const auto offered = 1 + *rc::gen::inRange<std::int64_t>(0, drafts + 1);
    const auto kept = std::min(*rc::gen::inRange<std::int64_t>(1, offered + 1), length - position);
    steps.push_back({offered, kept, true});
    position += kept;
  }
  return steps;
}

RC_GTEST_PROP(Ring, AnySplitGivesEachPoolItsOwnTokens, ()) {
  const auto kpool = *rc::gen::element<std::int64_t>(1, 2, 4, 7, 16);
  const auto drafts = *rc::gen::inRange<std::int64_t>(0, 7);
  const auto length = *rc::gen::inRange<std::int64_t>(0, 80);
  const auto ring = kpool + drafts + *rc::gen::inRange<std::int64_t>(0, 5);
  RC_ASSERT(pool_members(length, kpool, ring, any_schedule(length, drafts)) ==
            own_tokens(length, kpool));
}

TEST(Ring, OfThePoolsLengthIsEnoughWithoutDrafts) {
  std::vector<CacheStep> steps(40, CacheStep{1, 1, true});
  EXPECT_EQ(pool_members(40, 4, 4, steps), own_tokens(40, 4));
}

// Tokens 0..4 are kept; the step at 5 offers 5..9 and keeps 5 alone. Its drafts 8 and 9 take the
// slots of 4 and 5 in a ring of 4, so that pool 1 reads them when token 7 comes.
TEST(Ring, TooShortForItsDraftsLeavesStaleEntries) {
  const std::vector<CacheStep> steps = {{5, 5, false}, {5, 1, true}, {1, 1, true}, {1, 1, true}};
  const auto pools = pool_members(8, 4, 4, steps);
  EXPECT_EQ(pools[0], (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(pools[1], (std::vector<std::int64_t>{-1, -1, 6, 7}));
  EXPECT_EQ(pool_members(8, 4, 8, steps), own_tokens(8, 4));
}

TEST(Ring, ShorterThanPoolAndDraftsByOneIsTooShortForEveryNumberOfDrafts) {
  for (std::int64_t drafts = 1; drafts <= 6; ++drafts) {
    bool stale = false;
    for (std::int64_t start = 0; start < 8; ++start) {
      for (std::int64_t kept = 1; kept <= 1 + drafts; ++kept) {
        std::vector<CacheStep> steps;
        if (start > 0) steps.push_back({start, start, false});
        steps.push_back({1 + drafts, kept, true});
        const std::int64_t rest = 24 - start - kept;
        steps.insert(steps.end(), static_cast<std::size_t>(rest), CacheStep{1, 1, true});
        stale = stale || pool_members(24, 4, 4 + drafts - 2, steps) != own_tokens(24, 4);
        EXPECT_EQ(pool_members(24, 4, 4 + drafts - 1, steps), own_tokens(24, 4));
      }
    }
    EXPECT_TRUE(stale) << drafts << " drafts";
  }
}

TEST(Ring, PoolClosedByARejectedDraftIsWrittenAgain) {
  const std::vector<CacheStep> steps = {{2, 2, false}, {4, 1, true}, {1, 1, true}};
  EXPECT_EQ(pool_members(4, 4, 7, steps), own_tokens(4, 4));
}

TEST(Schedule, RefusesStepsThatDoNotMakeTheSequence) {
  EXPECT_THROW(validate({{3, 3, false}}, 4), ConfigError);
  EXPECT_THROW(validate({{1, 2, true}}, 2), ConfigError);
  EXPECT_THROW(validate({{3, 2, false}}, 2), ConfigError);
  EXPECT_THROW(validate({{0, 0, true}}, 0), ConfigError);
  EXPECT_THROW(pool_members(0, 4, 0, {}), ConfigError);
  EXPECT_TRUE(pool_members(0, 4, 4, {}).empty());
  EXPECT_TRUE(pool_members(3, 4, 4, {{3, 3, false}}).empty());
}

}  // namespace
}  // namespace indexpool::reference
