// Page layout and slots.
#include <fmt/format.h>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/serving_plan_pages.hpp"
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
  return serving::pool_slot(block_table, states_per_page, pool);
}

std::int64_t ring_size(std::int64_t index_kpool, std::int64_t drafts) {
  return serving::tail_ring(index_kpool, drafts);
}

}  // namespace indexpool::kernels
