// Properties of slots, addresses and launches.
#include "indexpool/verify/field/plan_checks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "indexpool/model/units.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {

Check check_slots(std::span<const std::int64_t> slots, std::int64_t capacity) {
  Tally tally("slots");
  const std::set<std::int64_t> distinct(slots.begin(), slots.end());
  std::map<std::int64_t, std::size_t> owner;
  for (std::size_t pool = 0; pool < slots.size(); ++pool) {
    const std::int64_t slot = slots[pool];
    tally.compare(slot >= 0 && slot < capacity, [&] {
      return fmt::format("pool {}: slot {} of a cache of {}", pool, slot, capacity);
    });
    const auto placed = owner.emplace(slot, pool);
    tally.compare(placed.second, [&] {
      return fmt::format("pool {} has slot {}, as pool {} has: {} pools in {} slots", pool, slot,
                         placed.first->second, slots.size(), distinct.size());
    });
  }
  return std::move(tally).finish();
}

Check check_reach(std::int64_t columns, std::int64_t page_states, std::int64_t index_kpool,
                  std::int64_t last_position) {
  Tally tally("reach");
  for (std::int64_t pool = 0; (pool + 1) * index_kpool - 1 <= last_position; ++pool) {
    tally.compare(pool / page_states < columns, [&] {
      return fmt::format(
          "pool {} (token {} on) lies in entry {} of a table of {} pages of {} pools", pool,
          pool * index_kpool, pool / page_states, columns, page_states);
    });
  }
  return std::move(tally).finish();
}

Check check_page(std::int64_t block_states, std::int64_t page_states) {
  Tally tally("page");
  tally.compare(page_states == 32 || page_states == 64, [&] {
    return fmt::format("a page of {} pools; the kernels take 32 or 64", page_states);
  });
  tally.compare(page_states > 0 && block_states % page_states == 0, [&] {
    return fmt::format("pages of {} pools do not tile a block of {}", page_states, block_states);
  });
  return std::move(tally).finish();
}

Check check_addresses(std::span<const Address> addresses) {
  Tally tally("address");
  for (const Address& address : addresses) {
    const std::int64_t exact = checked_product(address.index, address.stride, "an offset");
    tally.compare(address.found == exact, [&] {
      return fmt::format("{}: offset {}, expected {} ({} x {})", address.what, address.found, exact,
                         address.index, address.stride);
    });
  }
  return std::move(tally).finish();
}

Check check_sources(std::span<const std::int64_t> sources, std::span<const std::int64_t> full) {
  Tally tally("sources");
  std::int64_t expected = 0;
  for (std::size_t layer = 0; layer < sources.size(); ++layer) {
    const auto at = static_cast<std::int64_t>(layer);
    if (std::ranges::binary_search(full, at)) expected = at;
    tally.compare(sources[layer] == expected, [&] {
      return fmt::format("layer {} attends to the selection of layer {}, expected layer {}", layer,
                         sources[layer], expected);
    });
  }
  return std::move(tally).finish();
}

Check check_grid(const serving::Grid& grid, std::int64_t rows) {
  struct Axis {
    const char* name;
    std::int64_t blocks, most;
  };
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
  const Axis axes[] = {{"x", grid.x, 2147483647}, {"y", grid.y, 65535}, {"z", grid.z, 65535}};
  Tally tally("grid");
  for (const Axis& axis : axes) {
    tally.compare(axis.blocks >= 1 && axis.blocks <= axis.most, [&] {
      return fmt::format("{} blocks along {}; a launch takes 1 to {}", axis.blocks, axis.name,
                         axis.most);
    });
  }
  tally.compare(grid.y * grid.rows_per_block >= rows, [&] {
    return fmt::format("row {} of {} belongs to no block", grid.y * grid.rows_per_block, rows);
  });
  return std::move(tally).finish();
}

Check check_columns(std::int64_t table_columns, const IndexerConfig& config) {
  Tally tally("columns");
  const std::int64_t forced = config.index_kpool_always_select_tail ? config.index_kpool - 1 : 0;
  for (std::int64_t column = 0; column < config.index_topk + forced; ++column) {
    tally.compare(column < table_columns, [&] {
      return fmt::format("column {} of a selection ({}) has no place in a table of {} columns",
                         column, column < config.index_topk ? "a pool's token" : "the tail",
                         table_columns);
    });
  }
  return std::move(tally).finish();
}

Check check_group(std::span<const std::int64_t> restored_pages, std::int64_t page_tokens,
                  std::int64_t index_kpool) {
  Tally tally("group");
  for (const std::int64_t page : restored_pages) {
    const std::int64_t first_pool = page * page_tokens / index_kpool;
    const std::int64_t index_page = first_pool / page_tokens * index_kpool;
    tally.compare(std::ranges::find(restored_pages, index_page) != restored_pages.end(), [&] {
      return fmt::format(
          "token page {} is back, but its pools from {} on lie in index page {}, which is not",
          page, first_pool, index_page);
    });
  }
  return std::move(tally).finish();
}

Check check_local(std::span<const serving::RankSlot> slots, std::int64_t ranks,
                  std::int64_t slots_per_rank) {
  Tally tally("local");
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> owner;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const serving::RankSlot& slot = slots[i];
    const bool inside =
        slot.rank >= 0 && slot.rank < ranks && slot.local >= 0 && slot.local < slots_per_rank;
    tally.compare(inside, [&] {
      return fmt::format("slot {}: entry {} of rank {}, whose buffer has {}", i, slot.local,
                         slot.rank, slots_per_rank);
    });
    const auto placed = owner.emplace(std::pair(slot.rank, slot.local), i);
    tally.compare(placed.second, [&] {
      return fmt::format("slots {} and {} are both entry {} of rank {}", placed.first->second, i,
                         slot.local, slot.rank);
    });
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
