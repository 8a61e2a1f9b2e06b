// Bugs of admission, sharing and launches, with the numbers of their reports.
#include <set>

#include "indexpool/verify/field/plan_checks.hpp"
#include "indexpool/verify/field/scenario.hpp"

namespace indexpool::verify {
namespace {

constexpr std::int64_t kpool = 4;

// Blocks of tail rings that a request writes to, position by position.
std::int64_t tail_blocks_touched(std::int64_t tokens, std::int64_t ring) {
  constexpr std::int64_t block = 7;
  std::set<std::int64_t> blocks;
  for (std::int64_t t = 0; t < tokens; ++t)
    blocks.insert(serving::tail_slot(block, ring, t) / ring);
  return std::ssize(blocks);
}

// 38,750 blocks: what 155,000 tokens in blocks of 4 would take.
std::vector<Check> admission_by_pool_size(FieldSide side) {
  constexpr std::int64_t blocks = 155000 / kpool;
  const std::int64_t ring = serving::tail_ring(kpool, 0);
  std::vector<Demand> demands;
  for (const std::int64_t tokens : {1000, 69000, 155000, 160000}) {
    const auto kind =
        side == FieldSide::stand_in ? serving::CacheKind::by_token : serving::CacheKind::by_request;
    demands.push_back(
        {tokens, serving::blocks_needed(kind, tokens, kpool), tail_blocks_touched(tokens, ring)});
  }
  return {check_admission(demands, blocks)};
}

std::vector<Check> shared_layers_select_alone(FieldSide side) {
  constexpr std::int64_t layers = 78, frequency = 4, offset = 3;  // GLM-5.2
  constexpr std::int64_t full[] = {0,  1,  2,  6,  10, 14, 18, 22, 26, 30, 34,
                                   38, 42, 46, 50, 54, 58, 62, 66, 70, 74};
  std::vector<std::int64_t> sources = serving::selection_sources(layers, frequency, offset);
  if (side == FieldSide::stand_in) {
    for (std::int64_t i = 0; i < layers; ++i) sources[static_cast<std::size_t>(i)] = i;
  }
  return {check_sources(sources, full)};
}

std::vector<Check> rows_beyond_grid(FieldSide side) {
  constexpr std::int64_t rows = 131072, column_tiles = 4;
  const serving::Grid grid = side == FieldSide::stand_in
                                 ? serving::Grid{column_tiles, rows, 1, 1}
                                 : serving::grid_of_rows(rows, column_tiles);
  return {check_grid(grid, rows)};
}

std::vector<Check> index_table_too_narrow(FieldSide side) {
  const IndexerConfig config;  // index_topk 2048, tail forced
  constexpr std::int64_t alignment = 128;
  const std::int64_t columns =
      side == FieldSide::stand_in
          ? config.index_topk
          : serving::index_table_columns(config.selection_width(), alignment);
  return {check_columns(columns, config)};
}

}  // namespace

std::span<const FieldRow> schedule_scenarios() {
  static constexpr FieldRow rows[] = {{"admission_by_pool_size", admission_by_pool_size},
                                      {"shared_layers_select_alone", shared_layers_select_alone},
                                      {"rows_beyond_grid", rows_beyond_grid},
                                      {"index_table_too_narrow", index_table_too_narrow}};
  return rows;
}

}  // namespace indexpool::verify
