#include "indexpool/verify/faults/cost.hpp"

#include <gtest/gtest.h>

namespace indexpool::verify::faults {
namespace {

const LayerCost& row(const std::vector<LayerCost>& costs, std::string_view name) {
  for (const LayerCost& cost : costs) {
    if (cost.name == name) return cost;
  }
  ADD_FAILURE() << "no row " << name;
  return costs.front();
}

// 64 states of 132 bytes; 1M tokens are 262,144 pools in 4,096 pages.
TEST(LayerCost, HandWorkedForPagesOf64PoolsOf132Bytes) {
  const auto costs = layer_costs({numeric_mode("vllm_fp8"), 128, 64}, 4);
  const LayerCost& all = row(costs, "layered");
  EXPECT_DOUBLE_EQ(all.stored_bytes_per_page, 16);
  EXPECT_DOUBLE_EQ(all.share_of_page, 16.0 / 8448);
  EXPECT_LT(all.share_of_page, allowed_share_of_page);
  EXPECT_DOUBLE_EQ(all.stored_bytes, 65536);
  EXPECT_DOUBLE_EQ(all.read_bytes_per_step, 65536);
  // The kernel's 16 bytes, the source's 4, the seal.
  EXPECT_DOUBLE_EQ(all.written_bytes_per_pool, 36);
  // 4 keys and 4 gate scores of 256 bytes once more, their CRC, the sums, the state, the seal.
  EXPECT_DOUBLE_EQ(all.read_bytes_per_pool, 2048 + 4 + 16 + 132 + 16);
  const LayerCost& per_pool = row(costs, "pair_per_pool");
  EXPECT_DOUBLE_EQ(per_pool.share_of_page, 8.0 / 132);
  EXPECT_GT(per_pool.share_of_page, allowed_share_of_page);
}

TEST(LayerCost, WhatASealHoldsIsDealtToItsLayers) {
  for (const char* mode : {"vllm_fp8", "int8", "hf_f32"}) {
    const auto costs = layer_costs({numeric_mode(mode), 128, 64}, 4);
    EXPECT_DOUBLE_EQ(
        row(costs, "pair").stored_bytes_per_page + row(costs, "crc").stored_bytes_per_page,
        row(costs, "layered").stored_bytes_per_page)
        << mode;
  }
}

TEST(LayerCost, ASealOfUnquantisedCachesIsTheSame) {
  const auto costs = layer_costs({numeric_mode("bf16"), 128, 64}, 4);
  EXPECT_EQ(row(costs, "pair").stored_bytes_per_page, 8);
  EXPECT_DOUBLE_EQ(row(costs, "layered").share_of_page, 16.0 / (64 * 256));
}

}  // namespace
}  // namespace indexpool::verify::faults
