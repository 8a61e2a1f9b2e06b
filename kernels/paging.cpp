// Page layout and slots.
#include <fmt/format.h>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t sector = 32, scale_bytes = 4;

}  // namespace

std::int64_t PageLayout::code_bytes() const {
  return checked_product(head_dim, info(cache).bytes, "bytes of a cached pool");
}

std::int64_t PageLayout::scale_offset() const {
  return checked_product(states, code_bytes(), "code bytes of a page");
}

std::int64_t PageLayout::page_bytes() const {
  const std::int64_t scale_area = scales ? checked_product(states, scale_bytes, "scale bytes") : 0;
  const std::int64_t used = checked_sum(scale_offset(), scale_area, "bytes of a page");
  return checked_sum(used, sector - 1, "bytes of a page") / sector * sector;
}

PageLayout page_layout(const Shape& shape, std::int64_t states_per_page) {
  if (states_per_page < 1)
    throw ConfigError(
        fmt::format("states_per_page is {}; a page holds at least 1 pool", states_per_page));
  return {states_per_page, shape.config.index_head_dim, shape.mode.cache, shape.mode.quantised()};
}

std::int64_t pool_slot(std::span<const std::int32_t> block_table, std::int64_t states_per_page,
                       std::int64_t pool) {
  if (states_per_page < 1)
    throw ConfigError(
        fmt::format("states_per_page is {}; a page holds at least 1 pool", states_per_page));
  if (pool < 0) throw ConfigError(fmt::format("pool {} is negative", pool));
  const std::int64_t entry = pool / states_per_page;
  if (entry >= std::ssize(block_table))
    throw ConfigError(fmt::format(
        "pool {} lies in entry {} of the block table, which has {} entries of {} pools: give the "
        "request more pages",
        pool, entry, block_table.size(), states_per_page));
  const std::int64_t page = block_table[static_cast<std::size_t>(entry)];
  if (page < 0)
    throw ConfigError(
        fmt::format("block table entry {} is {}: pool {} has no page", entry, page, pool));
  return checked_sum(checked_product(page, states_per_page, "slot"), pool % states_per_page,
                     "slot");
}

std::int64_t ring_size(std::int64_t index_kpool, std::int64_t drafts) {
  if (index_kpool < 1) throw ConfigError(fmt::format("index_kpool is {}; at least 1", index_kpool));
  if (drafts < 0) throw ConfigError(fmt::format("{} speculative drafts; at least 0", drafts));
  const std::int64_t needed = checked_sum(index_kpool, drafts, "ring size");
  std::int64_t ring = index_kpool;
  while (ring < needed) ring = checked_product(ring, 2, "ring size");
  return ring;
}

}  // namespace indexpool::kernels
