#include "indexpool/verify/cache_layout.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "indexpool/model/units.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify {
namespace {

constexpr std::int64_t alignment = 32;  // a sector

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// 0 ... count - 1 in a seeded order (Fisher-Yates).
std::vector<std::int32_t> shuffled(std::int64_t count, const Random& random) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.integer(i, 0, i))]);
  }
  return order;
}

// Wild page numbers: reading through one leaves every buffer.
std::int32_t wild_page(std::int64_t index) {
  constexpr std::int32_t wild[] = {-1, std::numeric_limits<std::int32_t>::max(), -123456,
                                   std::numeric_limits<std::int32_t>::min()};
  return wild[index % 4];
}

void deal_pages(CacheLayout& layout, std::span<const std::int64_t> positions, std::int64_t kpool,
                std::uint64_t seed) {
  std::int64_t total = 0, widest = 0;
  std::vector<std::int64_t> needed;
  for (const std::int64_t tokens : positions) {
    const std::int64_t pools = tokens / kpool;
    needed.push_back((pools + layout.states_per_page - 1) / layout.states_per_page);
    widest = std::max(widest, needed.back());
    total = checked_sum(total, needed.back(), "pages of the batch");
  }
  layout.pages = total + 3;
  layout.table_width = widest + 2;
  checked_product(layout.pages, layout.page_stride, "bytes of the cache");
  const std::vector<std::int32_t> order = shuffled(layout.pages, Random(seed, 300));
  std::size_t dealt = 0;
  for (const std::int64_t pages : needed) {
    for (std::int64_t i = 0; i < layout.table_width; ++i) {
      layout.block_table.push_back(i < pages ? order[dealt++] : wild_page(i));
    }
  }
}

}  // namespace

std::span<const std::int32_t> CacheLayout::table(std::int64_t request) const {
  return std::span(block_table)
      .subspan(static_cast<std::size_t>(request * table_width),
               static_cast<std::size_t>(table_width));
}

std::int64_t CacheLayout::code_offset(std::int64_t request, std::int64_t pool) const {
  const std::int64_t page = table(request)[static_cast<std::size_t>(pool / states_per_page)];
  return page * page_stride + pool % states_per_page * code_bytes();
}

std::int64_t CacheLayout::scale_offset(std::int64_t request, std::int64_t pool) const {
  const std::int64_t page = table(request)[static_cast<std::size_t>(pool / states_per_page)];
  return page * page_stride + states_per_page * code_bytes() + pool % states_per_page * 4;
}

std::int64_t CacheLayout::tail_offset(std::int64_t request, std::int64_t half,
                                      std::int64_t position) const {
  const std::int64_t block = tail_block[static_cast<std::size_t>(request)];
  return block * tail_block_stride + (half * ring + position % ring) * tail_row_bytes();
}

CacheLayout lay_out_cache(const IndexerInputs& inputs, std::span<const std::int64_t> positions,
                          std::int64_t states_per_page, std::int64_t ring, std::uint64_t seed) {
  CacheLayout layout;
  layout.cache = inputs.mode.cache;
  layout.scales = inputs.mode.quantised();
  layout.head_dim = inputs.config.index_head_dim;
  layout.states_per_page = states_per_page;
  layout.storage = inputs.mode.storage;
  layout.ring = ring;
  const auto spare = static_cast<std::int64_t>(seed % 3) * alignment;
  const std::int64_t state_bytes = layout.code_bytes() + (layout.scales ? 4 : 0);
  layout.page_stride =
      round_up(checked_product(states_per_page, state_bytes, "bytes of a page"), alignment) + spare;
  layout.tail_block_stride = round_up(2 * ring * layout.tail_row_bytes(), alignment) + spare;
  deal_pages(layout, positions, inputs.config.index_kpool, seed);
  layout.tail_blocks = static_cast<std::int64_t>(positions.size()) + 2;
  const std::vector<std::int32_t> order = shuffled(layout.tail_blocks, Random(seed, 301));
  layout.tail_block.assign(order.begin(),
                           order.begin() + static_cast<std::ptrdiff_t>(positions.size()));
  return layout;
}

}  // namespace indexpool::verify
