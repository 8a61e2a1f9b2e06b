// Traffic of the logits kernels in closed form: what logits_tile.cuh and logits_fma.cuh do per
// block, warp and row, summed over query tiles and pool tiles.
#include "indexpool/kernels/logits_declared.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/issued.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t warp_lanes = 32, float_bytes = 4, chunk_bytes = 16;

// Loads that find the pools of a request, for the first `pools` of them: block table and scales, by
// warps of `warp_pools`. Walked once per request, since its tiles see more and more pools.
class PoolLookups {
 public:
  PoolLookups(const LogitsArgs& args, std::int64_t warp_pools, bool scales)
      : args_(args), warp_pools_(warp_pools), scales_(scales) {}

  GlobalAccess of(std::int64_t request, std::int64_t pools) {
    const std::int64_t full = pools / warp_pools_;
    if (request != request_ || full < walked_) {
      request_ = request;
      walked_ = 0;
      sum_ = {};
    }
    skip_periods(full);
    for (; walked_ < full; ++walked_) sum_ += of_warp(walked_ * warp_pools_, warp_pools_);
    GlobalAccess all = sum_;
    all += of_warp(full * warp_pools_, pools % warp_pools_);
    return all;
  }

 private:
  // Warps repeat once a whole number of them covers pages whose table entries fill whole sectors:
  // of a long sequence one such period is walked, and the others counted.
  void skip_periods(std::int64_t full) {
    const std::int64_t states = args_.cache.states_per_page;
    const std::int64_t entries_per_sector = sector_bytes / float_bytes;
    const std::int64_t period = std::lcm(states * entries_per_sector, warp_pools_) / warp_pools_;
    const std::int64_t periods = (full - walked_) / std::max<std::int64_t>(1, period);
    if (periods < 2) return;
    GlobalAccess one;
    for (std::int64_t i = 0; i < period; ++i) {
      one += of_warp((walked_ + i) * warp_pools_, warp_pools_);
    }
    sum_ += periods * one;
    walked_ += periods * period;
  }

  GlobalAccess of_warp(std::int64_t first, std::int64_t pools) const {
    if (pools == 0) return {};
    const std::int64_t states = args_.cache.states_per_page;
    const std::int64_t first_page = first / states, last_page = (first + pools - 1) / states;
    const std::int64_t entry = request_ * args_.block_table_width + first_page;
    const std::int64_t table_bytes = (last_page - first_page + 1) * float_bytes;
    GlobalAccess access{
        table_bytes, sectors_of(address_of(args_.block_table) + entry * float_bytes, table_bytes)};
    for (std::int64_t p = first; scales_ && p < first + pools;) {
      const std::int64_t state = p % states, run = std::min(states - state, first + pools - p);
      access += {run * float_bytes, sectors_of(state * float_bytes, run * float_bytes)};
      p += run;
    }
    return access;
  }

  const LogitsArgs& args_;
  std::int64_t warp_pools_;
  bool scales_;
  std::int64_t request_ = -1, walked_ = 0;
  GlobalAccess sum_;
};

// The tiles as the host knows them, or equal shares of the rows that all see max_pools.
std::vector<QueryTile> known_tiles(const LogitsArgs& args) {
  std::vector<QueryTile> tiles;
  for (std::int64_t i = 0; i < args.tile_count; ++i) {
    if (args.host_tiles != nullptr) {
      tiles.push_back(args.host_tiles[i]);
      continue;
    }
    const std::int64_t first = i * args.row_count / args.tile_count;
    const std::int64_t end = (i + 1) * args.row_count / args.tile_count;
    tiles.push_back({first, args.max_pools, static_cast<std::int32_t>(end - first), 0, 0});
  }
  return tiles;
}

std::int64_t visible_to(const LogitsArgs& args, const QueryTile& tile, std::int64_t row) {
  if (args.host_rows == nullptr) return tile.pools;
  return (args.host_rows[row].position + 1) / args.shape.config.index_kpool;
}

// Adds what every block of a launch does, and what each tile needs of memory at least.
struct Launch {
  const LogitsArgs& args;
  std::int64_t tile_pools, code_row;
  bool scales;
  Work work;
  std::map<std::int64_t, std::int64_t> request_pools;  // most pools any tile of it sees
  std::int64_t busy_blocks = 0, block_rows = 0;        // blocks that stay, and rows of all of them

  std::int64_t heads() const { return args.shape.config.index_n_heads; }
  std::int64_t warps() const { return work.threads_per_block / warp_lanes; }

  void add_grid() {
    work.blocks = args.tile_count * blocks_for(args.max_pools, tile_pools);
    const std::int64_t record = sizeof(QueryTile);
    add_loads(work.traffic, work.blocks * warps() * GlobalAccess{record, record / chunk_bytes});
  }

  void add_busy(std::int64_t blocks, std::int64_t rows) {
    busy_blocks += blocks;
    block_rows += blocks * rows;
  }
  double rows_of_block() const {
    return static_cast<double>(block_rows) /
           static_cast<double>(std::max<std::int64_t>(1, busy_blocks));
  }
  void add_issue(const LogitsIssue& issue) {
    work.idle_blocks = work.blocks - busy_blocks;
    work.instructions = static_cast<double>(warps() * busy_blocks) * issue.block +
                        static_cast<double>(warps() * block_rows) * issue.row;
  }

  // Loads of one row by one block: positions, head weights, query scales.
  GlobalAccess row_loads(std::int64_t row) const {
    GlobalAccess access = warps() * GlobalAccess{sizeof(QueryRow::position), 1};
    const std::int64_t first = row * heads() * float_bytes, bytes = heads() * float_bytes;
    const std::int64_t warp_bytes = warp_lanes * float_bytes;
    access += contiguous_access(address_of(args.head_weights) + first, bytes, warp_bytes);
    if (scales)
      access += contiguous_access(address_of(args.query_scales) + first, bytes, warp_bytes);
    return access;
  }

  GlobalAccess logits_stores(const QueryTile& tile, std::int64_t row) const {
    return contiguous_access(address_of(args.logits) + row * args.logits_stride * float_bytes,
                             visible_to(args, tile, row) * float_bytes, warp_lanes * float_bytes);
  }

  void add_unique(const QueryTile& tile) {
    std::int64_t& pools = request_pools[tile.request];
    pools = std::max(pools, tile.pools);
    const std::int64_t row_bytes = std::int64_t{sizeof(QueryRow::position)} +
                                   heads() * (code_row + (scales ? 2 : 1) * float_bytes);
    work.unique_read += Bytes(std::int64_t{sizeof(QueryTile)} + tile.rows * row_bytes);
    for (std::int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row)
      work.unique_write += Bytes(visible_to(args, tile, row) * float_bytes);
  }
  void finish_unique() {
    for (const auto& [request, pools] : request_pools)
      work.unique_read += Bytes(pools * (code_row + (scales ? float_bytes : 0)) +
                                blocks_for(pools, args.cache.states_per_page) * float_bytes);
  }
};

// Copies of `chunks` 16-byte pieces to shared memory: eight lanes always fill a line of banks.
void add_copies(Traffic& traffic, std::int64_t chunks) {
  add_shared_stores(traffic, 1, chunks * chunk_bytes, blocks_for(chunks, 8));
}

// Relu, product and sum per head and pool; the scale is noise.
constexpr double flop_per_head = 3;

void add_mma_row(Traffic& traffic, Multiply m, std::int64_t head_dim, std::int64_t heads) {
  const int d = static_cast<int>(head_dim);
  const std::int64_t chunks = heads * head_dim * code_bytes(m) / chunk_bytes;
  add_copies(traffic, chunks);
  if (converts(m)) {
    add_shared_loads(traffic, 1, chunks * chunk_bytes, blocks_for(chunks, 8));
    add_copies(traffic, chunks);
    add_copies(traffic, chunks);
  }
  add_shared_stores(traffic, 1, heads * float_bytes, blocks_for(heads, warp_lanes));
  const std::int64_t groups = mma_warps * blocks_for(heads, mma_group_heads(m, d));
  add_shared_loads(traffic, groups * mma_loads(m, d), 512, 4);
  add_shared_loads(traffic, groups * mma_head_tiles(m, d), 32, 2);
  traffic.matrix_ops += groups * mma_loads(m, d) * 4;
  traffic.shuffles += std::int64_t{mma_warps} * 3;
  traffic.block_barriers += 1;
}

// Per block: addresses by shuffles of 8 bytes, fragments by ldmatrix.
void add_mma_block(Traffic& traffic, Multiply m, std::int64_t head_dim) {
  const std::int64_t code_row = head_dim * code_bytes(m);
  traffic.shuffles += mma_warps * (2 * code_row / chunk_bytes + (has_scales(m) ? 1 : 0));
  add_shared_loads(traffic, std::int64_t{2} * mma_warps * code_row / mma_step_bytes, 512, 4);
}

std::string_view matrix_dtype(Multiply m) {
  return info(converts(m) ? DType::f16 : cache_dtype(m)).name;
}

Traffic times(std::int64_t count, const Traffic& one) {
  Traffic all;
  all.shared_load = one.shared_load * count;
  all.shared_store = one.shared_store * count;
  all.shared_wavefronts = one.shared_wavefronts * count;
  all.matrix_ops = one.matrix_ops * count;
  all.block_barriers = one.block_barriers * count;
  all.shuffles = one.shuffles * count;
  return all;
}

}  // namespace

Work declared_mma_logits(const LogitsArgs& args, Multiply m) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t code_row = config.index_head_dim * code_bytes(m);
  Launch launch{args, mma_tile_pools, code_row, has_scales(m), {}, {}};
  Work& work = launch.work;
  work.threads_per_block = mma_threads;
  launch.add_grid();
  Traffic per_row, per_block;
  add_mma_row(per_row, m, config.index_head_dim, config.index_n_heads);
  add_mma_block(per_block, m, config.index_head_dim);
  PoolLookups lookups(args, mma_warp_pools, has_scales(m));
  const std::int64_t row_codes = config.index_n_heads * code_row;
  std::int64_t weighed_pools = 0;  // times rows
  for (const QueryTile& tile : known_tiles(args)) {
    const std::int64_t blocks = blocks_for(tile.pools, mma_tile_pools);
    work.traffic += times(blocks, per_block);
    work.traffic += times(blocks * tile.rows, per_row);
    add_loads(work.traffic, lookups.of(tile.request, tile.pools));
    add_loads(work.traffic, {tile.pools * code_row, tile.pools * code_row / sector_bytes});
    // A warp's last line of banks may stay partly empty.
    const std::int64_t warps = tile.pools / mma_warp_pools, rest = tile.pools % mma_warp_pools;
    add_copies(work.traffic, warps * mma_warp_pools * code_row / chunk_bytes);
    add_copies(work.traffic, rest * code_row / chunk_bytes);
    for (std::int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
      add_loads(work.traffic, blocks * launch.row_loads(row));
      add_loads(work.traffic, blocks * contiguous_access(address_of(args.queries) + row * row_codes,
                                                         row_codes, warp_lanes * chunk_bytes));
      add_stores(work.traffic, launch.logits_stores(tile, row));
    }
    weighed_pools += blocks * mma_tile_pools * tile.rows;
    launch.add_busy(blocks, tile.rows);
    launch.add_unique(tile);
  }
  launch.finish_unique();
  const double products_per_op = 16.0 * 8 * mma_step_bytes / operand_bytes(m);
  work.matrix_flop = Flop(2 * products_per_op * static_cast<double>(work.traffic.matrix_ops));
  work.matrix_dtype = matrix_dtype(m);
  work.f32_flop = Flop(flop_per_head * static_cast<double>(config.index_n_heads * weighed_pools));
  const MmaShared shared = mma_shared(m, static_cast<int>(config.index_head_dim),
                                      static_cast<int>(config.index_n_heads));
  work.blocks_per_sm = resident_blocks(
      m == Multiply::e4m3 ? mma_e4m3_blocks_per_sm : mma_blocks_per_sm, shared.bytes);
  work.in_flight_per_block = Bytes(mma_tile_pools * code_row + row_codes);
  launch.add_issue(mma_instructions(m, config.index_head_dim, config.index_n_heads));
  work.chain = mma_chain(m, config.index_head_dim, config.index_n_heads, launch.rows_of_block());
  return launch.work;
}

namespace {

void add_fma_stage(Traffic& traffic, std::int64_t head_dim, std::int64_t heads) {
  const std::int64_t chunks = head_dim * float_bytes / chunk_bytes;
  add_copies(traffic, heads * chunks);
  add_shared_stores(traffic, 1, heads * float_bytes, 1);
  const std::int64_t warps = blocks_for(heads, fma_warp_heads);
  add_shared_loads(traffic, warps * chunks * fma_lane_pools, 512, 4);
  add_shared_loads(traffic, warps * chunks * fma_warp_heads, chunk_bytes, 4);
  add_shared_loads(traffic, warps * fma_warp_heads, float_bytes, 1);
  traffic.block_barriers += 1;
}

// The partial sums that the visible pools of a row read back, in warps of the first 64 threads.
void add_sum_loads(Traffic& traffic, std::int64_t visible) {
  add_shared_loads(traffic, fma_warps, visible * float_bytes, blocks_for(visible, warp_lanes));
}

}  // namespace

Work declared_fma_logits(const LogitsArgs& args) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t head_dim = config.index_head_dim, heads = config.index_n_heads;
  const std::int64_t code_row = head_dim * float_bytes;
  Launch launch{args, fma_tile_pools, code_row, false, {}, {}};
  Work& work = launch.work;
  work.threads_per_block = fma_threads;
  launch.add_grid();
  Traffic per_row, per_block;
  std::int64_t stages = 0;
  for (std::int64_t first = 0; first < heads; first += fma_stage_heads, ++stages)
    add_fma_stage(per_row, head_dim, std::min<std::int64_t>(fma_stage_heads, heads - first));
  add_shared_stores(per_row, std::int64_t{fma_warps} * fma_lane_pools, 128, 1);
  per_block.block_barriers = 1;
  per_block.shuffles =
      std::int64_t{2} * fma_warps * fma_gathered_pools * code_row / chunk_bytes / warp_lanes;
  PoolLookups lookups(args, fma_gathered_pools, false);
  std::int64_t weighed_pools = 0;
  for (const QueryTile& tile : known_tiles(args)) {
    const std::int64_t blocks = blocks_for(tile.pools, fma_tile_pools);
    work.traffic += times(blocks, per_block);
    work.traffic += times(blocks * tile.rows, per_row);
    add_loads(work.traffic, lookups.of(tile.request, tile.pools));
    add_loads(work.traffic, {tile.pools * code_row, tile.pools * code_row / sector_bytes});
    add_copies(work.traffic, tile.pools * code_row / chunk_bytes);
    for (std::int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
      GlobalAccess loads = launch.row_loads(row);
      // Every stage reads the position again.
      loads += (stages - 1) * launch.warps() * GlobalAccess{sizeof(QueryRow::position), 1};
      loads += contiguous_access(address_of(args.queries) + row * heads * code_row,
                                 heads * code_row, warp_lanes * chunk_bytes);
      add_loads(work.traffic, blocks * loads);
      add_stores(work.traffic, launch.logits_stores(tile, row));
      add_sum_loads(work.traffic, visible_to(args, tile, row));
    }
    weighed_pools += blocks * fma_tile_pools * tile.rows;
    launch.add_busy(blocks, tile.rows);
    launch.add_unique(tile);
  }
  launch.finish_unique();
  work.f32_flop = Flop(static_cast<double>(heads * weighed_pools) *
                       (2 * static_cast<double>(head_dim) + flop_per_head));
  work.blocks_per_sm =
      resident_blocks(fma_blocks_per_sm, fma_shared(static_cast<int>(head_dim)).bytes);
  work.in_flight_per_block =
      Bytes(fma_tile_pools * code_row + std::min<std::int64_t>(heads, fma_stage_heads) * code_row);
  launch.add_issue(fma_instructions(head_dim, heads));
  work.chain = fma_chain(head_dim, heads, launch.rows_of_block());
  return launch.work;
}

}  // namespace indexpool::kernels
