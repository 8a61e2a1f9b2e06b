// Traffic of composite attention: rows are read whole, four elements a lane, so that only the
// number of tokens in a tile counts.
#include <algorithm>

#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/issued.hpp"

namespace indexpool::kernels {

Traffic times(std::int64_t count, const Traffic& one) {
  Traffic sum;
  sum.global_load.value = count * one.global_load.value;
  sum.global_store.value = count * one.global_store.value;
  sum.load_sectors = count * one.load_sectors;
  sum.store_sectors = count * one.store_sectors;
  sum.shared_load.value = count * one.shared_load.value;
  sum.shared_store.value = count * one.shared_store.value;
  sum.shared_wavefronts = count * one.shared_wavefronts;
  sum.matrix_ops = count * one.matrix_ops;
  sum.block_barriers = count * one.block_barriers;
  sum.shuffles = count * one.shuffles;
  return sum;
}

namespace {

constexpr std::int64_t warp_lanes = 32, word_bytes = 4, vector_bytes = 16;
constexpr std::int64_t tile_warps = tile_threads / warp_lanes;
constexpr std::int64_t rows_of_warp = warp_lanes / lanes_per_row;
constexpr std::int64_t tree_steps = 3;  // over lanes_per_row
// 16 bytes a lane are served by quarter-warps; here none of them has a conflict.
constexpr std::int64_t quarter_warps = 4;

class TileTraffic {
 public:
  explicit TileTraffic(std::int64_t dim) : dim_(dim), fours_(dim / 4) {}
  const Traffic& traffic() const { return traffic_; }

  // `rows` of them exist, all `of` are written to shared memory.
  void stage(std::int64_t rows, std::int64_t of, DType dtype) {
    const std::int64_t bytes = rows * dim_ * info(dtype).bytes;
    add_loads(traffic_, {bytes, bytes / sector_bytes});
    add_shared_stores(traffic_, of * fours_ / warp_lanes, warp_lanes * vector_bytes, quarter_warps);
  }
  void multiply() {
    load_fours(fours_ * rows_per_thread, rows_of_warp);
    load_fours(fours_ * others_per_thread, lanes_per_row);
  }
  void weigh() {
    traffic_.shuffles += tile_warps * rows_per_thread * tree_steps;
    add_shared_stores(traffic_, tile_warps * rows_per_thread * others_per_thread,
                      warp_lanes * word_bytes, 1);
  }
  void add_values() {
    load_fours(std::int64_t{tile_others / 4} * rows_per_thread, rows_of_warp);
    load_fours(tile_others * (fours_ / lanes_per_row), lanes_per_row);
  }
  void store(std::int64_t bytes) { add_stores(traffic_, {bytes, bytes / sector_bytes}); }
  void totals() { traffic_.shuffles += tile_warps * rows_per_thread * tree_steps; }
  void barriers(std::int64_t count) { traffic_.block_barriers += count; }

 private:
  // `count` instructions of each warp that read `distinct` vectors.
  void load_fours(std::int64_t count, std::int64_t distinct) {
    add_shared_loads(traffic_, tile_warps * count, distinct * vector_bytes, quarter_warps);
  }

  Traffic traffic_;
  std::int64_t dim_, fours_;
};

void set_tiles(Work& work, std::int64_t tokens, std::int64_t heads, std::int64_t shared_bytes) {
  work.blocks = blocks_for(tokens, tile_rows) * heads;
  work.threads_per_block = tile_threads;
  work.blocks_per_sm = resident_blocks(tile_blocks_per_sm, shared_bytes);
}

}  // namespace

Work declared_decompress(const DecompressArgs& args) {
  const std::int64_t dim = args.head_dim, heads = args.heads;
  const std::int64_t element = info(args.storage).bytes;
  Work work;
  const auto block = [&](std::int64_t tokens) {
    TileTraffic tile(dim);
    tile.stage(tokens, tile_rows, args.storage);
    for (std::int64_t output = 0; output < 2 * dim; output += tile_others) {
      tile.stage(tile_others, tile_others, args.storage);
      tile.multiply();
      tile.store(tokens * tile_others * word_bytes);
      tile.barriers(2);
    }
    return tile.traffic();
  };
  work.traffic = times(args.tokens / tile_rows * heads, block(tile_rows));
  if (args.tokens % tile_rows != 0) work.traffic += times(heads, block(args.tokens % tile_rows));
  const std::int64_t weights = args.tokens > 0 ? 2 * heads * dim * dim : 0;
  work.unique_read = Bytes((args.tokens * heads * dim + weights) * element);
  work.unique_write = work.traffic.global_store;
  work.f32_flop =
      Flop(4 * static_cast<double>(args.tokens * heads) * static_cast<double>(dim * dim));
  set_tiles(work, args.tokens, heads, decompress_shared_bytes(args.head_dim));
  work.in_flight_per_block = Bytes(tile_others * dim * element);
  issue_decompress(args, work);
  return work;
}

Work declared_composite_attention(const CompositeAttentionArgs& args) {
  const std::int64_t dim = args.head_dim, heads = args.heads;
  const std::int64_t element = info(args.storage).bytes;
  Work work;
  TileTraffic whole(dim), around(dim);  // a tile of 32 tokens; what a block does once
  const auto go = [&](TileTraffic& tile, std::int64_t tokens) {
    tile.stage(tokens, tile_others, DType::f32);
    tile.stage(tokens, tile_others, args.storage);
    tile.multiply(), tile.weigh(), tile.add_values();
    tile.barriers(2);
  };
  go(whole, tile_others);
  around.stage(tile_rows, tile_rows, DType::f32);
  around.totals(), around.store(tile_rows * dim * word_bytes);
  // Blocks of 64 tokens have 2, 4, 6 ... tiles; the last one may be shorter.
  const std::int64_t full = args.tokens / tile_rows, rest = args.tokens % tile_rows;
  const std::int64_t per_block = tile_rows / tile_others;
  std::int64_t tiles = per_block * full * (full + 1) / 2;
  work.traffic = times(full * heads, around.traffic());
  if (rest > 0) {
    TileTraffic last(dim);
    last.stage(rest, tile_rows, DType::f32);
    last.totals(), last.store(rest * dim * word_bytes);
    if (rest % tile_others != 0) go(last, rest % tile_others);
    work.traffic += times(heads, last.traffic());
    tiles += full * per_block + rest / tile_others;
  }
  work.traffic += times(tiles * heads, whole.traffic());
  const std::int64_t elements = args.tokens * heads * dim;
  work.unique_read = Bytes(elements * (2 * word_bytes + element));
  work.unique_write = Bytes(elements * word_bytes);
  // Of every pair of a tile: two per channel of its score and of its values, an exponential (23).
  const double pairs = static_cast<double>(tiles * heads) * tile_rows * tile_others;
  work.f32_flop = Flop(pairs * (4 * static_cast<double>(dim) + 23 + 4));
  set_tiles(work, args.tokens, heads, composite_shared_bytes(args.head_dim));
  work.in_flight_per_block = Bytes(tile_others * dim * (word_bytes + element));
  issue_composite_attention(args, work);
  return work;
}

}  // namespace indexpool::kernels
