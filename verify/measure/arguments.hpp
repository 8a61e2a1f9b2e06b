// What a launch at a point of the grid is told, before any memory is there: declared work and
// predictions need no more.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/measure/grid.hpp"

namespace indexpool::verify::timing {

// Pages of all sequences lie in a scattered order, as in a server that has run for a while; a
// decode step's sequences end at positions `tokens` - 1, - 2, ... (modulo index_kpool), so that one
// in index_kpool closes a pool.
struct HostArguments {
  // `args` points into the vectors; memory of the target is null.
  kernels::OpArgs args;
  std::vector<kernels::PoolJob> pool_jobs;
  std::vector<kernels::TailJob> tail_jobs;
  kernels::AppendPlan append;
  std::vector<kernels::QueryRow> rows;
  std::vector<kernels::QueryTile> tiles;
  std::vector<std::int32_t> block_table;  // [batch, table_width]
  std::int64_t table_width = 0;
  std::int64_t input_rows = 0;   // of keys and gate scores, or of queries
  std::int64_t pages = 0;        // of the cache
  std::int64_t tail_blocks = 0;  // rings

  HostArguments() = default;
  HostArguments(HostArguments&&) = default;
  HostArguments& operator=(HostArguments&&) = default;
  HostArguments(const HostArguments&) = delete;
  HostArguments& operator=(const HostArguments&) = delete;
};
// Throws ConfigError for an unknown operation or mode, and for sizes that leave 63 bits.
HostArguments host_arguments(const Point& point, const Geometry& geometry);

}  // namespace indexpool::verify::timing
