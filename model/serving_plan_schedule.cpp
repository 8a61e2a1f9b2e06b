// Admission, shared layers, launch grids.
#include "indexpool/model/serving_plan_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/serving_plan_sizes.hpp"

namespace indexpool::serving {

std::int64_t blocks_needed(CacheKind kind, std::int64_t tokens, std::int64_t block_tokens) {
  at_least("tokens", tokens, 0);
  at_least("block_tokens", block_tokens, 1);
  return kind == CacheKind::by_request ? 1 : ceil_div(tokens, block_tokens);
}

std::vector<std::int64_t> selection_sources(std::int64_t layers, std::int64_t frequency,
                                            std::int64_t offset) {
  at_least("layers", layers, 0);
  at_least("frequency", frequency, 1);
  at_least("offset", offset, 1);  // layer 0 has nobody to share with
  std::vector<std::int64_t> sources;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool full = std::max<std::int64_t>(layer - offset + 1, 0) % frequency == 0;
    sources.push_back(full ? layer : sources.back());
  }
  return sources;
}

std::int64_t index_table_columns(std::int64_t selection_width, std::int64_t alignment) {
  at_least("selection_width", selection_width, 0);
  at_least("alignment", alignment, 1);
  return checked_product(ceil_div(selection_width, alignment), alignment,
                         "columns of the index table");
}

Grid grid_of_rows(std::int64_t rows, std::int64_t column_tiles) {
  at_least("rows", rows, 1);
  at_least("column_tiles", column_tiles, 1);
  if (column_tiles > largest_grid.x)
    throw ConfigError(fmt::format("{} column tiles; a grid has at most {} blocks along x",
                                  column_tiles, largest_grid.x));
  const std::int64_t y = std::min(rows, largest_grid.y);
  return {column_tiles, y, 1, ceil_div(rows, y)};
}

}  // namespace indexpool::serving
