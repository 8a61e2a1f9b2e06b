#include "indexpool/kernels/logits_checks.hpp"

#include <limits>

#include <fmt/format.h>

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/logits_geometry.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t grid_limit = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::optional<std::string> bad_logits(const LogitsArgs& args, std::int64_t tile_pools) {
  const IndexerConfig& config = args.shape.config;
  if (config.index_n_heads < 1 || config.index_n_heads > largest_head_count)
    return fmt::format("index_n_heads is {}; these kernels take 1 to {}", config.index_n_heads,
                       largest_head_count);
  if (config.index_kpool < 1 || config.index_kpool > grid_limit)
    return fmt::format("index_kpool is {}; it must lie in 1 ... {}", config.index_kpool,
                       grid_limit);
  if (auto reason = bad_cache(args.cache)) return reason;
  if (reinterpret_cast<std::uintptr_t>(args.queries) % 16 != 0)
    return "queries do not start on a multiple of 16 bytes";
  if (args.logits_stride < args.max_pools)
    return fmt::format("logits_stride is {}; rows see up to {} pools", args.logits_stride,
                       args.max_pools);
  if (args.max_pools > args.block_table_width * args.cache.states_per_page)
    return fmt::format("a block table of {} pages of {} pools does not reach {} pools",
                       args.block_table_width, args.cache.states_per_page, args.max_pools);
  const std::int64_t pool_tiles = blocks_for(args.max_pools, tile_pools);
  if (pool_tiles > 0 && args.tile_count > grid_limit / pool_tiles)
    return fmt::format(
        "{} query tiles times {} pool tiles leave a 1-D grid's {} blocks: split the "
        "rows",
        args.tile_count, pool_tiles, grid_limit);
  return std::nullopt;
}

}  // namespace indexpool::kernels
