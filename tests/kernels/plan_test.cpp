#include "indexpool/kernels/plan.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

Shape shape_of(const std::string& mode, std::int64_t head_dim) {
  Shape shape;
  shape.mode = numeric_mode(mode);
  shape.config.index_head_dim = head_dim;
  return shape;
}

TEST(Paging, PagesAreThoseOfTheServingEngines) {
  // 132 bytes per state: 4224 for 32 states, 8448 for 64.
  EXPECT_EQ(page_layout(shape_of("vllm_fp8", 128), 32).page_bytes(), 4224);
  EXPECT_EQ(page_layout(shape_of("vllm_fp8", 128), 64).page_bytes(), 8448);
  EXPECT_EQ(page_layout(shape_of("vllm_fp8", 128), 64).scale_offset(), 8192);
  EXPECT_EQ(page_layout(shape_of("bf16", 128), 64).page_bytes(), 64 * 256);
  EXPECT_EQ(page_layout(shape_of("vllm_fp8", 128), 1).page_bytes(), 160);  // 132 in whole sectors
}

TEST(Paging, RingFollowsThePublishedRule) {
  EXPECT_EQ(ring_size(4, 0), 4);
  for (std::int64_t drafts = 1; drafts <= 4; ++drafts) EXPECT_EQ(ring_size(4, drafts), 8);
  for (std::int64_t drafts = 5; drafts <= 12; ++drafts) EXPECT_EQ(ring_size(4, drafts), 16);
  EXPECT_EQ(ring_size(1, 0), 1);
  EXPECT_EQ(ring_size(3, 4), 12);
}

TEST(Paging, LargePagesKeepSixtyFourBits) {
  const std::vector<std::int32_t> table = {2'147'483'647};
  EXPECT_EQ(pool_slot(table, 64, 63), 2'147'483'647LL * 64 + 63);
}

TEST(Paging, BadTablesAreNamed) {
  const std::vector<std::int32_t> table = {3, -1};
  EXPECT_THROW(pool_slot(table, 4, 8), ConfigError);
  EXPECT_THROW(pool_slot(table, 4, 4), ConfigError);
  EXPECT_THROW(pool_slot(table, 4, -1), ConfigError);
  EXPECT_THROW(pool_slot(table, 0, 0), ConfigError);
  EXPECT_EQ(pool_slot(table, 4, 3), 15);
}

RC_GTEST_PROP(Paging, SlotMappingIsInjective, ()) {
  const auto states = *rc::gen::inRange<std::int64_t>(1, 70);
  const auto requests = *rc::gen::inRange<std::int64_t>(1, 5);
  std::vector<std::int32_t> pages(static_cast<std::size_t>(requests * 6));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937_64(*rc::gen::arbitrary<std::uint64_t>()));
  std::set<std::int64_t> slots;
  for (std::int64_t r = 0; r < requests; ++r) {
    const std::span<const std::int32_t> table(pages.data() + r * 6, 6);
    for (std::int64_t pool = 0; pool < 6 * states; ++pool)
      RC_ASSERT(slots.insert(pool_slot(table, states, pool)).second);
  }
}

// Each pool exactly once, by the chunk that brings its last token, over any chunking.
RC_GTEST_PROP(Plan, ChunksCloseEachPoolOnce, ()) {
  const auto kpool = *rc::gen::inRange<std::int64_t>(1, 17);
  const auto length = *rc::gen::inRange<std::int64_t>(0, 100);
  std::vector<std::int32_t> table(101);
  std::iota(table.begin(), table.end(), 0);
  std::vector<std::int64_t> closed;
  std::int64_t start = 0;
  while (start < length) {
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, length - start + 1);
    const StepRequest request = {start, tokens, 1000, 7, table};
    const PrefillPlan plan = plan_prefill({&request, 1}, kpool, 1, ring_size(kpool, 0));
    for (const PoolJob& job : plan.pools) {
      closed.push_back(job.slot);
      RC_ASSERT(job.first_position == job.slot * kpool);
      // Carried tokens lie before the chunk, the others in it.
      RC_ASSERT(job.first_position + job.carried >= start);
      RC_ASSERT(job.carried == 0 || job.first_position + job.carried == start);
      RC_ASSERT(job.last_row - 1000 + start == job.first_position + kpool - 1);
      RC_ASSERT(job.tail_block == 7);
    }
    start += tokens;
  }
  std::vector<std::int64_t> expected(static_cast<std::size_t>(length / kpool));
  std::iota(expected.begin(), expected.end(), 0);
  RC_ASSERT(closed == expected);
}

RC_GTEST_PROP(Plan, RingEntriesOfAStepAreDistinct, ()) {
  const auto kpool = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto ring = ring_size(kpool, *rc::gen::inRange<std::int64_t>(0, 7));
  const StepRequest request = {
      *rc::gen::inRange<std::int64_t>(0, 50), *rc::gen::inRange<std::int64_t>(0, 50), 0, 0, {}};
  const std::vector<std::int32_t> table(100, 0);
  StepRequest with_table = request;
  with_table.block_table = table;
  const PrefillPlan plan = plan_prefill({&with_table, 1}, kpool, 100, ring);
  std::set<std::int32_t> entries;
  for (const TailJob& job : plan.tails) {
    RC_ASSERT(entries.insert(job.ring_index).second);
    RC_ASSERT(job.ring_index == (request.start + job.row) % ring);
  }
  RC_ASSERT(std::ssize(plan.tails) == std::min(request.tokens, ring));
}

RC_GTEST_PROP(Plan, AppendClosesWhereAPoolIsFull, ()) {
  const auto kpool = *rc::gen::inRange<std::int64_t>(1, 9);
  const std::vector<std::int32_t> table(100, 0);
  std::vector<StepRequest> step;
  const auto requests = *rc::gen::inRange<std::size_t>(0, 5);
  for (std::size_t i = 0; i < requests; ++i)
    step.push_back({*rc::gen::inRange<std::int64_t>(0, 50), *rc::gen::inRange<std::int64_t>(0, 8),
                    0, 0, table});
  const AppendPlan plan = plan_append(step, kpool, 100);
  RC_ASSERT(plan.jobs.size() == requests);
  std::int64_t closed = 0;
  for (const AppendJob& job : plan.jobs) {
    for (std::int64_t t = 0; t < job.tokens; ++t) {
      const bool full = (job.first_position + t + 1) % kpool == 0;
      RC_ASSERT((plan.slots[static_cast<std::size_t>(job.first_slot + t)] >= 0) == full);
      closed += full ? 1 : 0;
    }
  }
  RC_ASSERT(plan.pools_closed == closed);
  RC_ASSERT(plan.tokens == std::ssize(plan.slots));
}

RC_GTEST_PROP(Plan, TilesCoverTheRowsInOrder, ()) {
  const auto per_tile = *rc::gen::inRange<std::int64_t>(1, 9);
  std::vector<QueryRow> rows;
  const auto requests = *rc::gen::inRange<std::int64_t>(0, 4);
  for (std::int64_t r = 0; r < requests; ++r) {
    const auto count = *rc::gen::inRange<std::int64_t>(0, 20);
    for (std::int64_t i = 0; i < count; ++i) rows.push_back({i, 0, r, 0});
  }
  std::int64_t next = 0;
  for (const QueryTile& tile : plan_query_tiles(rows, 4, per_tile)) {
    RC_ASSERT(tile.first_row == next);
    RC_ASSERT(tile.rows >= 1 && tile.rows <= per_tile);
    for (std::int64_t i = next; i < next + tile.rows; ++i)
      RC_ASSERT(rows[static_cast<std::size_t>(i)].request == tile.request);
    next += tile.rows;
    RC_ASSERT(tile.pools == (rows[static_cast<std::size_t>(next - 1)].position + 1) / 4);
  }
  RC_ASSERT(next == std::ssize(rows));
}

TEST(Plan, ContextShorterThanAPoolClosesNothing) {
  const std::vector<std::int32_t> table = {0};
  const StepRequest request = {0, 3, 0, 0, table};
  const PrefillPlan plan = plan_prefill({&request, 1}, 4, 64, 4);
  EXPECT_TRUE(plan.pools.empty());
  EXPECT_EQ(plan.tails.size(), 3u);
}

TEST(Plan, NonsenseIsRefused) {
  const std::vector<std::int32_t> table = {0};
  const StepRequest negative = {-1, 3, 0, 0, table};
  EXPECT_THROW(plan_prefill({&negative, 1}, 4, 64, 4), ConfigError);
  EXPECT_THROW(plan_append({&negative, 1}, 4, 64), ConfigError);
  const StepRequest fine = {0, 3, 0, 0, table};
  EXPECT_THROW(plan_prefill({&fine, 1}, 4, 64, 3), ConfigError);
  EXPECT_THROW(plan_prefill({&fine, 1}, 0, 64, 4), ConfigError);
  EXPECT_THROW(plan_query_tiles({}, 4, 0), ConfigError);
}

}  // namespace
}  // namespace indexpool::kernels
