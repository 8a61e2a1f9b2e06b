// Blocks, pages, tables, slots and addresses.
#include "indexpool/model/serving_plan_pages.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/serving_plan_sizes.hpp"

namespace indexpool::serving {
namespace {

constexpr std::int64_t kernel_pages[] = {64, 32};  // states, the preferred first

}  // namespace

bool kernel_takes_page(std::int64_t page_states) {
  return std::ranges::find(kernel_pages, page_states) != std::end(kernel_pages);
}

PageGeometry page_geometry(std::int64_t block_tokens, std::int64_t index_kpool) {
  at_least("block_tokens", block_tokens, 1);
  at_least("index_kpool", index_kpool, 1);
  const auto fail = [&](const char* why) {
    throw ConfigError(
        fmt::format("a block of {} tokens at index_kpool {}: {}", block_tokens, index_kpool, why));
  };
  if (block_tokens % index_kpool != 0) fail("its tokens are no whole number of pools");
  PageGeometry geometry{block_tokens, block_tokens / index_kpool, 0, 0};
  for (const std::int64_t page : kernel_pages) {
    if (geometry.page_states == 0 && geometry.block_states % page == 0) geometry.page_states = page;
  }
  if (geometry.page_states == 0) fail("the kernels' pages of 32 or 64 pools do not tile it");
  geometry.pages_per_block = geometry.block_states / geometry.page_states;
  return geometry;
}

std::int64_t table_columns(std::int64_t tokens, std::int64_t index_kpool,
                           std::int64_t page_states) {
  at_least("tokens", tokens, 0);
  at_least("index_kpool", index_kpool, 1);
  at_least("page_states", page_states, 1);
  return ceil_div(tokens / index_kpool, page_states);
}

std::int64_t reach_states(std::int64_t columns, std::int64_t page_states) {
  at_least("columns", columns, 0);
  at_least("page_states", page_states, 1);
  return checked_product(columns, page_states, "reach of a block table");
}

std::int64_t reach_tokens(std::int64_t columns, std::int64_t page_states,
                          std::int64_t index_kpool) {
  at_least("index_kpool", index_kpool, 1);
  return checked_product(reach_states(columns, page_states), index_kpool, "reach of a block table");
}

std::vector<std::int32_t> table_in_pages(std::span<const std::int32_t> blocks,
                                         std::int64_t pages_per_block) {
  at_least("pages_per_block", pages_per_block, 1);
  std::vector<std::int32_t> pages;
  for (const std::int32_t block : blocks) {
    for (std::int64_t i = 0; i < pages_per_block; ++i) {
      const std::int64_t page =
          checked_sum(checked_product(block, pages_per_block, "page number"), i, "page number");
      if (page != static_cast<std::int32_t>(page))
        throw ConfigError(fmt::format("page {} of block {} needs more than 32 bits", page, block));
      pages.push_back(static_cast<std::int32_t>(page));
    }
  }
  return pages;
}

std::int64_t pool_slot(std::span<const std::int32_t> table, std::int64_t page_states,
                       std::int64_t pool) {
  if (page_states < 1)
    throw ConfigError(
        fmt::format("states_per_page is {}; a page holds at least 1 pool", page_states));
  if (pool < 0) throw ConfigError(fmt::format("pool {} is negative", pool));
  const std::int64_t entry = pool / page_states;
  if (entry >= std::ssize(table))
    throw ConfigError(fmt::format(
        "pool {} lies in entry {} of the block table, which has {} entries of {} pools: give the "
        "request more pages",
        pool, entry, table.size(), page_states));
  const std::int64_t page = table[static_cast<std::size_t>(entry)];
  if (page < 0)
    throw ConfigError(
        fmt::format("block table entry {} is {}: pool {} has no page", entry, page, pool));
  return checked_sum(checked_product(page, page_states, "slot"), pool % page_states, "slot");
}

std::int64_t token_page_slot(std::span<const std::int32_t> token_pages, std::int64_t page_tokens,
                             std::int64_t index_kpool, std::int64_t pool) {
  at_least("page_tokens", page_tokens, 1);
  at_least("index_kpool", index_kpool, 1);
  at_least("pool", pool, 0);
  const std::int64_t entries = std::ssize(token_pages);
  const std::int64_t entry = checked_product(pool / page_tokens, index_kpool, "token page");
  if (entry >= entries)
    throw ConfigError(
        fmt::format("pool {} lies in token page {}, and the request has {}", pool, entry, entries));
  const std::int64_t page = token_pages[static_cast<std::size_t>(entry)];
  at_least("a token page's number", page, 0);
  return checked_sum(checked_product(page, page_tokens, "slot"), pool % page_tokens, "slot");
}

std::int64_t visible_pools(std::int64_t position, std::int64_t index_kpool) {
  at_least("position", position, -1);
  at_least("index_kpool", index_kpool, 1);
  return checked_sum(position, 1, "position") / index_kpool;
}

std::int64_t tail_ring(std::int64_t index_kpool, std::int64_t drafts) {
  if (index_kpool < 1) throw ConfigError(fmt::format("index_kpool is {}; at least 1", index_kpool));
  if (drafts < 0) throw ConfigError(fmt::format("{} speculative drafts; at least 0", drafts));
  const std::int64_t needed = checked_sum(index_kpool, drafts, "ring size");
  std::int64_t ring = index_kpool;
  while (ring < needed) ring = checked_product(ring, 2, "ring size");
  return ring;
}

Bytes tail_block_bytes(std::int64_t ring, std::int64_t head_dim, std::int64_t element_bytes) {
  at_least("ring", ring, 1);
  at_least("head_dim", head_dim, 1);
  at_least("element_bytes", element_bytes, 1);
  const std::int64_t row = checked_product(head_dim, element_bytes, "bytes of a tail row");
  return Bytes(checked_product(checked_product(2, ring, "tail rows"), row, "bytes of a tail"));
}

std::int64_t tail_slot(std::int64_t block, std::int64_t ring, std::int64_t position) {
  at_least("tail block", block, 0);
  at_least("ring", ring, 1);
  at_least("position", position, 0);
  return checked_sum(checked_product(block, ring, "tail slot"), position % ring, "tail slot");
}

Bytes state_bytes(std::int64_t head_dim, std::int64_t code_bytes, std::int64_t scale_bytes) {
  at_least("head_dim", head_dim, 1);
  at_least("code_bytes", code_bytes, 1);
  at_least("scale_bytes", scale_bytes, 0);
  return Bytes(checked_sum(checked_product(head_dim, code_bytes, "bytes of a state"), scale_bytes,
                           "bytes of a state"));
}

StateOffsets planar_offsets(std::int64_t slot, std::int64_t page_states, std::int64_t head_dim,
                            std::int64_t page_stride) {
  constexpr std::int64_t scale_bytes = 4;
  at_least("slot", slot, 0);
  at_least("page_states", page_states, 1);
  const std::int64_t state = state_bytes(head_dim, 1, scale_bytes).value;
  at_least("page_stride", page_stride, checked_product(page_states, state, "bytes of a page"));
  const std::int64_t page = strided_offset(slot / page_states, page_stride);
  const std::int64_t at = slot % page_states;
  return {checked_sum(page, at * head_dim, "offset of codes"),
          checked_sum(page, page_states * head_dim + at * scale_bytes, "offset of a scale")};
}

std::int64_t strided_offset(std::int64_t index, std::int64_t stride) {
  at_least("index", index, 0);
  at_least("stride", stride, 0);
  return checked_product(index, stride, "offset");
}

std::int64_t first_index_beyond_int32(std::int64_t stride) {
  at_least("stride", stride, 1);
  return ceil_div(std::int64_t{1} << 31, stride);
}

RankSlot rank_slot(std::int64_t slot, std::int64_t ranks, std::int64_t interleave) {
  at_least("slot", slot, 0);
  at_least("ranks", ranks, 1);
  at_least("interleave", interleave, 1);
  const std::int64_t stripe = checked_product(ranks, interleave, "slots of a stripe");
  return {slot % stripe / interleave, slot / stripe * interleave + slot % interleave};
}

std::vector<std::int64_t> offload_group(std::int64_t token_page, std::int64_t index_kpool) {
  at_least("token_page", token_page, 0);
  at_least("index_kpool", index_kpool, 1);
  std::vector<std::int64_t> group;
  const std::int64_t first = token_page - token_page % index_kpool;
  for (std::int64_t i = 0; i < index_kpool; ++i) group.push_back(checked_sum(first, i, "page"));
  return group;
}

}  // namespace indexpool::serving
