#include "indexpool/verify/cache_layout.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/random_problem.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

RC_GTEST_PROP(CacheLayout, PoolsNeverShareAByte, (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  const Case c = make_case(problem);
  const CacheLayout layout =
      lay_out_cache(c.inputs, problem.lengths, problem.states_per_page, 8, problem.seed);
  std::set<std::int64_t> taken;
  const auto take = [&](std::int64_t offset, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      RC_ASSERT(offset + i < layout.cache_bytes());
      RC_ASSERT(taken.insert(offset + i).second);
    }
  };
  for (std::size_t s = 0; s < problem.lengths.size(); ++s) {
    const auto request = static_cast<std::int64_t>(s);
    const std::int64_t pools = problem.lengths[s] / problem.indexer.index_kpool;
    for (std::int64_t pool = 0; pool < pools; ++pool) {
      take(layout.code_offset(request, pool), layout.code_bytes());
      if (layout.scales) take(layout.scale_offset(request, pool), 4);
    }
  }
}

TEST(CacheLayout, UnusedTableEntriesAreWild) {
  Problem problem;
  problem.indexer = {1, 32, 16, 4, true};
  problem.lengths = {40, 4};
  const Case c = make_case(problem);
  const CacheLayout layout = lay_out_cache(c.inputs, problem.lengths, 4, 4, 1);
  const auto second = layout.table(1);
  EXPECT_GE(second[0], 0);
  EXPECT_LT(second[0], layout.pages);
  for (std::size_t i = 1; i < second.size(); ++i) {
    EXPECT_TRUE(second[i] < 0 || second[i] >= layout.pages) << i;
  }
}

TEST(CacheLayout, StridesExceedWhatTheyHoldForSomeSeeds) {
  Problem problem;
  problem.indexer = {1, 32, 16, 4, true};
  const Case c = make_case(problem);
  const auto stride = [&](std::uint64_t seed) {
    return lay_out_cache(c.inputs, problem.lengths, 8, 4, seed).page_stride;
  };
  EXPECT_EQ(stride(3), 8 * 36);
  EXPECT_GT(stride(4), 8 * 36);
}

}  // namespace
}  // namespace indexpool::verify
