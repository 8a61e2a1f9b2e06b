#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/error.hpp"

#include "expect_error.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

ArchitectureConfig glm() { return load_architecture("glm-5.3-flash"); }

Bytes item(const MemoryPlan& plan, std::string_view name) {
  for (const MemoryItem& each : plan.items) {
    if (each.name == name) return each.bytes;
  }
  ADD_FAILURE() << "no item " << name;
  return {};
}

TEST(Memory, Glm53FlashAtAMillionTokens) {
  EXPECT_EQ(indexer_cache_bytes(glm(), mebi), Bytes(380'633'088));     // 11 x 262144 x 132
  EXPECT_EQ(unpooled_cache_bytes(glm(), mebi), Bytes(1'522'532'352));  // 11 x 1048576 x 132
  EXPECT_EQ(paged_cache_bytes(glm(), mebi), Bytes(380'633'088));       // 4096 whole pages
}

TEST(Memory, OnlyWholePoolsCountAndPagesAreWhole) {
  EXPECT_EQ(indexer_cache_bytes(glm(), 0), Bytes(0));
  EXPECT_EQ(indexer_cache_bytes(glm(), 3), Bytes(0));
  EXPECT_EQ(indexer_cache_bytes(glm(), 4), Bytes(11 * 132));
  EXPECT_EQ(indexer_cache_bytes(glm(), 7), Bytes(11 * 132));
  EXPECT_EQ(paged_cache_bytes(glm(), 3), Bytes(0));
  EXPECT_EQ(paged_cache_bytes(glm(), 4), Bytes(11 * 8448));
  EXPECT_EQ(paged_cache_bytes(glm(), 256), Bytes(11 * 8448));
  EXPECT_EQ(paged_cache_bytes(glm(), 259), Bytes(11 * 8448));
  EXPECT_EQ(paged_cache_bytes(glm(), 260), Bytes(11 * 2 * 8448));
}

TEST(Memory, UnquantisedModesKeepNoScale) {
  ArchitectureConfig architecture = glm();
  architecture.numeric_mode = "bf16";
  EXPECT_EQ(indexer_cache_bytes(architecture, 4), Bytes(11 * 256));
  architecture.numeric_mode = "hf_f32";
  EXPECT_EQ(indexer_cache_bytes(architecture, 4), Bytes(11 * 512));
  architecture.numeric_mode = "int8";
  EXPECT_EQ(indexer_cache_bytes(architecture, 4), Bytes(11 * 132));
}

TEST(Memory, ResidentPlanItemByItem) {
  const MemoryPlan plan = resident_memory(glm(), {.tokens = 260, .sequences = 3, .drafts = 2});
  EXPECT_EQ(item(plan, "pools"), Bytes(3 * 11 * 2 * 8448));
  EXPECT_EQ(item(plan, "tail ring"), Bytes(3 * 11 * 4096));  // ring of 8: vLLM's 4096 B
  EXPECT_EQ(item(plan, "block table"), Bytes(3 * 2 * 4));
  EXPECT_EQ(item(plan, "logits"), Bytes(9 * 65 * 4));  // 3 sequences, 1 + 2 rows each
  EXPECT_EQ(item(plan, "selection"), Bytes(9 * 2051 * 4));
  Bytes sum;
  for (const MemoryItem& each : plan.items) sum += each.bytes;
  EXPECT_EQ(plan.total, sum);
}

TEST(Memory, TailRingGrowsWithTheDraftsAsVllms) {
  const auto ring = [](std::int64_t drafts) {
    return item(resident_memory(glm(), {.tokens = 4, .drafts = drafts}), "tail ring").value / 11;
  };
  EXPECT_EQ(ring(0), 2048);
  EXPECT_EQ(ring(1), 4096);
  EXPECT_EQ(ring(4), 4096);
  EXPECT_EQ(ring(5), 8192);
  EXPECT_EQ(ring(12), 8192);
}

TEST(Memory, QueryRowsOfAChunkSetTheWorkspace) {
  const MemoryPlan plan = resident_memory(glm(), {.tokens = mebi, .query_rows = 8192});
  EXPECT_EQ(item(plan, "logits"), Bytes(8'589'934'592));  // 8192 x 262144 x 4
}

RC_GTEST_PROP(Memory, PagedHoldsPooledWithLessThanAPageToSpare, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(0, 40 * mebi);
  const std::int64_t spare =
      paged_cache_bytes(glm(), tokens).value - indexer_cache_bytes(glm(), tokens).value;
  RC_ASSERT(spare >= 0);
  RC_ASSERT(spare < 11 * 8448);
  RC_ASSERT(indexer_cache_bytes(glm(), tokens + 4).value ==
            indexer_cache_bytes(glm(), tokens).value + 11 * 132);
  RC_ASSERT(unpooled_cache_bytes(glm(), 4 * tokens).value ==
            4 * 4 * indexer_cache_bytes(glm(), 4 * tokens).value / 4);
}

TEST(Memory, ImpossibleContextsAreRefused) {
  expect_parts(config_error_of([] { indexer_cache_bytes(glm(), -1); }), {"-1 tokens"});
  expect_parts(config_error_of([] { unpooled_cache_bytes(glm(), -1); }), {"-1 tokens"});
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  config_error_of([&] { indexer_cache_bytes(glm(), largest); });
  config_error_of([&] { unpooled_cache_bytes(glm(), largest / 132); });
  config_error_of([&] { paged_cache_bytes(glm(), largest); });
  expect_parts(config_error_of([] { resident_memory(glm(), {.tokens = 4, .sequences = 0}); }),
               {"0 sequences"});
  config_error_of([&] { resident_memory(glm(), {.tokens = mebi, .query_rows = largest / mebi}); });
}

}  // namespace
}  // namespace indexpool
