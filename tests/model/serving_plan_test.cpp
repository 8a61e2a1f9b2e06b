#include "indexpool/model/serving_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::serving {
namespace {

std::int64_t in_range(std::int64_t low, std::int64_t past) {
  return *rc::gen::inRange<std::int64_t>(low, past);
}

// Distinct numbers below `below`, in a random order.
std::vector<std::int32_t> distinct_pages(std::int64_t count, std::int32_t below) {
  return *rc::gen::unique<std::vector<std::int32_t>>(static_cast<std::size_t>(count),
                                                     rc::gen::inRange(0, below));
}

RC_GTEST_PROP(Slots, AreOnesOwnForDistinctPages, ()) {
  const std::int64_t states = in_range(1, 65), pages = in_range(1, 20);
  const auto table = distinct_pages(pages, 1000);
  std::set<std::int64_t> slots;
  for (std::int64_t pool = 0; pool < pages * states; ++pool) {
    RC_ASSERT(slots.insert(pool_slot(table, states, pool)).second);
  }
}

RC_GTEST_PROP(Slots, AreOnesOwnThroughBlocksCutIntoPages, ()) {
  const std::int64_t kpool = in_range(1, 9);
  const std::int64_t block_tokens = 32 * in_range(1, 12) * kpool;
  const PageGeometry geometry = page_geometry(block_tokens, kpool);
  RC_ASSERT(kernel_takes_page(geometry.page_states));
  RC_ASSERT(geometry.page_states * geometry.pages_per_block == geometry.block_states);
  const auto table = table_in_pages(distinct_pages(in_range(1, 8), 500), geometry.pages_per_block);
  std::set<std::int64_t> slots;
  const std::int64_t pools = reach_states(std::ssize(table), geometry.page_states);
  for (std::int64_t pool = 0; pool < pools; ++pool) {
    RC_ASSERT(slots.insert(pool_slot(table, geometry.page_states, pool)).second);
  }
}

RC_GTEST_PROP(Slots, AreOnesOwnInPagesOfTokens, ()) {
  const std::int64_t page = in_range(1, 65), kpool = in_range(1, 9), groups = in_range(1, 6);
  const auto pages = distinct_pages(groups * kpool, 1000);
  std::set<std::int64_t> slots;
  for (std::int64_t pool = 0; pool < groups * page; ++pool) {
    const std::int64_t slot = token_page_slot(pages, page, kpool, pool);
    RC_ASSERT(slots.insert(slot).second);
    const auto first = static_cast<std::size_t>(pool / page * kpool);  // of the pool's group
    RC_ASSERT(slot / page == pages[first]);
  }
  RC_ASSERT_THROWS_AS(token_page_slot(pages, page, kpool, groups * page), ConfigError);
}

RC_GTEST_PROP(Reach, GrowsWithColumnsAndPagesAndPools, ()) {
  const std::int64_t columns = in_range(0, 5000), states = in_range(1, 65), kpool = in_range(1, 9);
  const std::int64_t reach = reach_tokens(columns, states, kpool);
  RC_ASSERT(reach_tokens(columns + 1, states, kpool) > reach);
  RC_ASSERT(reach_tokens(columns, states + 1, kpool) >= reach);
  RC_ASSERT(reach_tokens(columns, states, kpool + 1) >= reach);
}

RC_GTEST_PROP(Reach, OfTheColumnsForSomeTokensCoversTheirPoolsAndNoPageMore, ()) {
  const std::int64_t tokens = in_range(0, 100000), states = in_range(1, 65);
  const std::int64_t kpool = in_range(1, 9);
  const std::int64_t columns = table_columns(tokens, kpool, states);
  RC_ASSERT(reach_states(columns, states) >= tokens / kpool);
  if (columns > 0) RC_ASSERT(reach_states(columns - 1, states) < tokens / kpool);
}

TEST(Pages, OfTheBlocksThatEnginesChoose) {
  struct Row {
    std::int64_t block, states, page, pages;
  };
  // Blocks of GLM-5.3-Flash on 1, 4 and 8 GPUs, and on 2 with FP8 latents.
  for (const Row& row : {Row{4352, 1088, 64, 17}, Row{1152, 288, 32, 9}, Row{640, 160, 32, 5},
                         Row{4608, 1152, 64, 18}, Row{128, 32, 32, 1}, Row{256, 64, 64, 1}}) {
    const PageGeometry geometry = page_geometry(row.block, 4);
    EXPECT_EQ(geometry.block_states, row.states);
    EXPECT_EQ(geometry.page_states, row.page);
    EXPECT_EQ(geometry.pages_per_block, row.pages);
  }
  for (const std::int64_t block : {0, 6, 8, 64, 130, 132})
    EXPECT_THROW(page_geometry(block, 4), ConfigError) << block;
  EXPECT_THROW(page_geometry(128, 0), ConfigError);
}

TEST(Pages, ABlockIsThePagesFromItsNumberTimesTheirCount) {
  const std::int32_t blocks[] = {2, 0};
  EXPECT_EQ(table_in_pages(blocks, 3), (std::vector<std::int32_t>{6, 7, 8, 0, 1, 2}));
  const std::int32_t far[] = {2'000'000'000};
  EXPECT_THROW(table_in_pages(far, 2), ConfigError);
}

TEST(Pages, FourHundredAndTenColumnsReach52480Tokens) {
  EXPECT_EQ(reach_tokens(410, 32, 4), 52480);
  EXPECT_EQ(reach_tokens(410 * 5, 32, 4), 262400);
  EXPECT_EQ(table_columns(262144, 4, 32), 2048);
}

TEST(Pools, AreVisibleWhenTheirLastTokenIs) {
  const std::vector<std::int64_t> expected{0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4};
  for (std::size_t t = 0; t < expected.size(); ++t)
    EXPECT_EQ(visible_pools(static_cast<std::int64_t>(t), 4), expected[t]) << t;
  EXPECT_EQ(visible_pools(-1, 4), 0);
  EXPECT_THROW(visible_pools(0, 0), ConfigError);
}

RC_GTEST_PROP(TailRing, HoldsAPoolAndEveryDraftAndIsTheLeastOfItsKind, ()) {
  const std::int64_t kpool = in_range(1, 65), drafts = in_range(0, 100);
  const std::int64_t ring = tail_ring(kpool, drafts);
  RC_ASSERT(ring >= kpool + drafts);
  RC_ASSERT(ring % kpool == 0);
  const std::int64_t factor = ring / kpool;
  RC_ASSERT((factor & (factor - 1)) == 0);
  if (factor > 1) RC_ASSERT(ring / 2 < kpool + drafts);
}

TEST(TailRing, IsThatOfThePublishedFormula) {
  const auto published = [](std::int64_t drafts) {
    std::int64_t power = 1;
    while (power < (4 + drafts + 3) / 4) power *= 2;
    return 4 * power;
  };
  for (std::int64_t drafts = 0; drafts <= 40; ++drafts)
    EXPECT_EQ(tail_ring(4, drafts), published(drafts)) << drafts;
  EXPECT_EQ(tail_block_bytes(4, 128, 2), Bytes(2048));
  EXPECT_EQ(tail_block_bytes(16, 128, 2), Bytes(8192));
  EXPECT_EQ(tail_slot(3, 8, 21), 3 * 8 + 5);
}

RC_GTEST_PROP(Addresses, OfAPagesStatesDoNotOverlap, ()) {
  const std::int64_t states = in_range(1, 20), dim = in_range(1, 40);
  const std::int64_t stride = states * (dim + 4) + in_range(0, 64);
  std::set<std::int64_t> bytes;
  for (std::int64_t slot = 0; slot < 3 * states; ++slot) {
    const StateOffsets at = planar_offsets(slot, states, dim, stride);
    for (std::int64_t i = 0; i < dim; ++i) RC_ASSERT(bytes.insert(at.codes + i).second);
    for (std::int64_t i = 0; i < 4; ++i) RC_ASSERT(bytes.insert(at.scale + i).second);
  }
  RC_ASSERT(*bytes.rbegin() < 3 * stride);
}

TEST(Addresses, NeedMoreThan31BitsFromThePublishedPagesOn) {
  EXPECT_EQ(first_index_beyond_int32(1077120), 1994);
  EXPECT_EQ(first_index_beyond_int32(8448), 254201);
  EXPECT_EQ(first_index_beyond_int32(262144), 8192);
  EXPECT_EQ(strided_offset(1994, 1077120), 2147777280);
  EXPECT_EQ(planar_offsets(1994 * 64 + 63, 64, 128, 1077120).codes, 2147777280 + 63 * 128);
  EXPECT_EQ(planar_offsets(1994 * 64 + 63, 64, 128, 1077120).scale, 2147777280 + 64 * 128 + 63 * 4);
  EXPECT_THROW(planar_offsets(0, 64, 128, 8447), ConfigError);
  EXPECT_THROW(strided_offset(std::int64_t{1} << 40, std::int64_t{1} << 40), ConfigError);
}

RC_GTEST_PROP(Ranks, ShareOutSlotsWithoutLossOrOverlap, ()) {
  const std::int64_t ranks = in_range(1, 9), interleave = in_range(1, 65), stripes = in_range(1, 5);
  const std::int64_t each = stripes * interleave;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t slot = 0; slot < ranks * each; ++slot) {
    const RankSlot at = rank_slot(slot, ranks, interleave);
    RC_ASSERT(at.rank >= 0);
    RC_ASSERT(at.rank < ranks);
    RC_ASSERT(at.local >= 0);
    RC_ASSERT(at.local < each);
    RC_ASSERT(seen.insert({at.rank, at.local}).second);
  }
}

RC_GTEST_PROP(OffloadGroups, PartitionTheTokenPages, ()) {
  const std::int64_t kpool = in_range(1, 9), page = in_range(0, 1000);
  const auto group = offload_group(page, kpool);
  RC_ASSERT(std::ssize(group) == kpool);
  RC_ASSERT(group.front() % kpool == 0);
  RC_ASSERT(std::ranges::count(group, page) == 1);
  for (const std::int64_t member : group) RC_ASSERT(offload_group(member, kpool) == group);
}

RC_GTEST_PROP(RowChunks, CoverEveryRowOnceWithinTheBudget, ()) {
  const std::int64_t rows = in_range(0, 20000), columns = in_range(1, 300000);
  const Bytes budget(columns * 4 * in_range(1, 200) + in_range(0, 4));
  std::int64_t next = 0;
  const auto chunks = chunk_rows(rows, columns, budget);
  for (const RowChunk& chunk : chunks) {
    RC_ASSERT(chunk.first == next);
    RC_ASSERT(chunk.rows > 0);
    RC_ASSERT(chunk.rows <= chunks.front().rows);
    RC_ASSERT(logits_bytes(chunk.rows, columns).value <= budget.value);
    next += chunk.rows;
  }
  RC_ASSERT(next == rows);
  // No taller chunk would fit.
  if (chunks.size() > 1)
    RC_ASSERT(logits_bytes(chunks.front().rows + 1, columns).value > budget.value);
}

TEST(RowChunks, SplitTheReportedSizes) {
  EXPECT_EQ(chunk_rows(16384, 229376, Bytes(std::int64_t{2} << 30)).size(), 8u);
  EXPECT_EQ(chunk_rows(8192, 300000, default_logits_budget).size(), 19u);
  EXPECT_EQ(chunk_rows(5, 0, Bytes(0)), (std::vector<RowChunk>{{0, 5}}));
  EXPECT_TRUE(chunk_rows(0, 100, Bytes(400)).empty());
  EXPECT_THROW(chunk_rows(1, 100, Bytes(399)), ConfigError);
  EXPECT_THROW(chunk_rows(-1, 100, Bytes(400)), ConfigError);
}

TEST(Logits, TakeThePublishedBytes) {
  EXPECT_EQ(logits_bytes(4096, logits_columns(93000)), Bytes(1526726656));  // 1.42 GiB
  EXPECT_EQ(deepgemm_prefill_logits_bytes(8192, 262144, 32), Bytes(8598323200));
  EXPECT_EQ(deepgemm_prefill_logits_bytes(8192, 1048576, 32), Bytes(34368126976));
  EXPECT_EQ(deepgemm_prefill_logits_bytes(1, 1, 32), logits_bytes(4, 512));
  EXPECT_EQ(deepgemm_prefill_logits_bytes(1, 1, 256), logits_bytes(1, 512));
  EXPECT_EQ(logits_bytes(1024, decode_logits_columns(1048576, 4)), Bytes(std::int64_t{1} << 30));
  EXPECT_EQ(decode_rows(256, 3), 1024);
  EXPECT_THROW(logits_bytes(std::int64_t{1} << 40, std::int64_t{1} << 40), ConfigError);
}

TEST(GatherWorkspace, IsAQuarterInPoolsOfFour) {
  const Bytes state = state_bytes(128, 1, 4);
  EXPECT_EQ(state, Bytes(132));
  EXPECT_EQ(gather_workspace_bytes(gather_states(1000000, 1), state), Bytes(5280000000));
  EXPECT_EQ(gather_workspace_bytes(gather_states(1000000, 4), state), Bytes(1320000000));
}

RC_GTEST_PROP(CachingAllocator, HoldsAtLeastTheLargestAndAtMostTheSum, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::inRange<std::int64_t>(0, 100'000'000));
  std::vector<Bytes> bytes;
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    bytes.emplace_back(size);
    sum += size + (std::int64_t{2} << 20);
  }
  const AllocatorUse use = simulate_caching_allocator(bytes);
  RC_ASSERT(use.reserved.value >= use.largest.value);
  RC_ASSERT(use.reserved.value <= sum);
  RC_ASSERT(use.blocks <= use.distinct_sizes);
}

TEST(CachingAllocator, KeepsEverySizeOfAGrowingBufferAndOneOfAFixedOne) {
  const auto growing =
      simulate_caching_allocator(prompt_logits(200000, 4608, 4, LogitsWidth::growing));
  const auto fixed = simulate_caching_allocator(prompt_logits(200000, 4608, 4, LogitsWidth::fixed));
  EXPECT_EQ(fixed.blocks, 1);
  EXPECT_EQ(fixed.reserved, fixed.largest);
  EXPECT_EQ(growing.blocks, 43);  // the last chunk is lower and fits
  EXPECT_GT(growing.reserved.value, 20 * growing.largest.value);
  const Bytes falling[] = {Bytes(30 << 20), Bytes(20 << 20), Bytes(10 << 20)};
  EXPECT_EQ(simulate_caching_allocator(falling).reserved, Bytes(30 << 20));
}

TEST(Admission, OfAStateThatARequestHasOnceTakesOneBlock) {
  EXPECT_EQ(blocks_needed(CacheKind::by_request, 160000, 4), 1);
  EXPECT_EQ(blocks_needed(CacheKind::by_token, 160000, 4), 40000);
  EXPECT_EQ(blocks_needed(CacheKind::by_token, 160001, 640), 251);
  EXPECT_THROW(blocks_needed(CacheKind::by_token, -1, 4), ConfigError);
}

RC_GTEST_PROP(SelectionSources, AreLayersWithAnIndexerAtOrBefore, ()) {
  const std::int64_t layers = in_range(1, 100), frequency = in_range(1, 9), offset = in_range(1, 9);
  const auto sources = selection_sources(layers, frequency, offset);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t source = sources[static_cast<std::size_t>(layer)];
    RC_ASSERT(source <= layer);
    RC_ASSERT(layer - source < frequency);
    RC_ASSERT(sources[static_cast<std::size_t>(source)] == source);
    const bool full = std::max<std::int64_t>(layer - offset + 1, 0) % frequency == 0;
    RC_ASSERT((source == layer) == full);
  }
}

TEST(SelectionSources, OfGlm52AreTwentyOneLayers) {
  const auto sources = selection_sources(78, 4, 3);
  std::vector<std::int64_t> full;
  for (std::int64_t i = 0; i < 78; ++i) {
    if (sources[static_cast<std::size_t>(i)] == i) full.push_back(i);
  }
  EXPECT_EQ(full, (std::vector<std::int64_t>{0,  1,  2,  6,  10, 14, 18, 22, 26, 30, 34,
                                             38, 42, 46, 50, 54, 58, 62, 66, 70, 74}));
  EXPECT_THROW(selection_sources(4, 4, 0), ConfigError);
}

TEST(IndexTable, Of2051PositionsIs2176Wide) {
  EXPECT_EQ(index_table_columns(2051, 128), 2176);
  EXPECT_EQ(index_table_columns(2048, 128), 2048);
}

RC_GTEST_PROP(Grids, StayWithinTheirLimitsAndCoverTheRows, ()) {
  const std::int64_t rows = in_range(1, 20'000'000), tiles = in_range(1, 1000);
  const Grid grid = grid_of_rows(rows, tiles);
  RC_ASSERT(grid.x == tiles);
  RC_ASSERT(grid.y >= 1);
  RC_ASSERT(grid.y <= 65535);
  RC_ASSERT(grid.z == 1);
  RC_ASSERT(grid.y * grid.rows_per_block >= rows);
  RC_ASSERT(grid.y * (grid.rows_per_block - 1) < rows);
}

TEST(Grids, LoopOverRowsBeyond65535) {
  EXPECT_EQ(grid_of_rows(65535, 4), (Grid{4, 65535, 1, 1}));
  EXPECT_EQ(grid_of_rows(131072, 4), (Grid{4, 65535, 1, 3}));
  EXPECT_THROW(grid_of_rows(1, std::int64_t{1} << 31), ConfigError);
}

}  // namespace
}  // namespace indexpool::serving
