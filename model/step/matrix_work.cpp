// Products with parameters, in tiles, one tile a block. Shared memory is left out: the matrix rate
// of a device is what products reach, their shared memory included.
#include <algorithm>
#include <cmath>

#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

struct Tile {
  std::int64_t m, n;
};
constexpr double mma_k_bytes = 32;         // of k in one mma: 16 of two bytes, 32 of one
constexpr std::int64_t k_step = 64;        // of a main loop's iteration
constexpr std::int64_t stages = 2;         // of loads in flight
constexpr std::int64_t large_tile = 8192;  // elements; a larger one fills an SM's registers
constexpr std::int64_t threads = 256;      // of a block
// What launches of a library add: see product_overhead_source.
constexpr double prologue_s = 1.1e-6, split_s = 1.1e-6;
constexpr std::int64_t least_split = 256;  // of k, for a block
constexpr std::int64_t most_splits = 16;

// Few rows take the smallest tile that holds them, many the one that libraries take for them
// (cuBLAS and CUTLASS: 128 x 256).
Tile tile_of(std::int64_t rows) {
  if (rows > 128) return {128, 256};
  if (rows > 64) return {128, 128};
  return {rows > 32 ? 64 : rows > 16 ? 32 : 16, 64};
}

struct Product {
  std::int64_t rows = 0, n = 0, k = 0;  // of one
  double count = 1;                     // products in the launch
  double parameter_bytes = 0;           // of all
  ParameterFormat format = ParameterFormat::bf16;
};

// So many blocks share a tile's k that every SM has one.
std::int64_t split_of(double tiles, std::int64_t k, const DeviceSpec& device) {
  const auto wanted = static_cast<std::int64_t>(real(device.sm_count) / tiles);
  return std::clamp<std::int64_t>(std::min(wanted, k / least_split), 1, most_splits);
}

// Blocks of a cluster share a tile's parameters (cuBLAS and CUTLASS from Hopper on).
double cluster_blocks(const DeviceSpec& device, const Product& p) {
  const bool clusters = device.compute_capability.size() > 3 || device.compute_capability[0] >= '9';
  return clusters && p.rows > 128 ? 2 : 1;
}

void add_traffic(Work& work, const Product& p, Tile tile, double tiles, double split,
                 std::int64_t element, double cluster) {
  const double in = p.count * real(p.rows) * real(p.k) * real(element);
  const double out = p.count * real(p.rows) * real(p.n) * real(bf16_bytes);
  // Partial sums in f32, written and read again, but not beyond the L2.
  const double partial = split > 1 ? 2 * split * out * real(f32_bytes) / real(bf16_bytes) : 0;
  const double parameter_element = p.parameter_bytes / (p.count * real(p.n) * real(p.k));
  const double loads =
      tiles * real(p.k) *
      (real(std::min(tile.m, p.rows)) * real(element) + real(tile.n) * parameter_element / cluster);
  work.unique_read = whole_bytes(in + p.parameter_bytes, "bytes of a product");
  work.unique_write = whole_bytes(out, "bytes of a product");
  work.traffic.global_load = whole_bytes(loads + partial / 2, "loads of a product");
  work.traffic.global_store = whole_bytes(out + partial / 2, "bytes of a product");
}

// First loads, then each step along k: its products follow each other on the same accumulators, and
// a barrier frees the stage. Splits meet at the end.
Chain chain_of(const Product& p, std::int64_t split, std::int64_t element) {
  const double steps = real(divided_up(divided_up(p.k, split), k_step));
  Chain chain;
  chain.first_loads = 1;
  chain.matrix = steps * real(k_step * element) / mma_k_bytes;
  chain.barriers = steps;
  chain.loads = split > 1 ? 2 : 1;  // stores that the next launch waits for
  return chain;
}

Work work_of(const Product& p, const DeviceSpec& device) {
  const char* dtype = matrix_dtype(p.format, device);
  const std::int64_t element = input_bytes(dtype);
  const Tile tile = tile_of(p.rows);
  const double tiles = p.count * real(divided_up(p.rows, tile.m)) * real(divided_up(p.n, tile.n));
  const std::int64_t split = split_of(tiles, p.k, device);
  Work work;
  add_traffic(work, p, tile, tiles, real(split), element, cluster_blocks(device, p));
  work.matrix_dtype = dtype;
  work.matrix_flop =
      Flop(2 * p.count * real(divided_up(p.rows, tile.m) * tile.m) * real(p.n) * real(p.k));
  if (element == bf16_bytes && p.format != ParameterFormat::bf16) {
    // Two operations convert an element, once for each tile of rows.
    work.f32_flop = Flop(2 * tiles * real(tile.n) * real(p.k));
  }
  work.blocks = whole_bytes(std::ceil(tiles * real(split)), "blocks of a product").value;
  work.threads_per_block = threads;
  work.blocks_per_sm = tile.m * tile.n > large_tile ? 1 : 2;
  work.in_flight_per_block = Bytes(stages * (tile.m + tile.n) * k_step * element);
  work.serial_latency = Seconds(prologue_s + (split > 1 ? split_s : 0));
  work.chain = chain_of(p, split, element);
  return work;
}

// `touched` of the experts here have rows, evenly.
Work experts_work(const ExpertProduct& product, double touched, std::int64_t rows,
                  const DeviceSpec& device) {
  const double share = real(product.here) / real(product.routed);
  const double assigned = real(rows) * real(product.per_token) * share;
  const double count = std::max(1.0, std::min(touched * share, assigned));
  Product p;
  p.rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(assigned / count)));
  p.n = product.n;
  p.k = product.k;
  p.count = count;
  p.parameter_bytes = count * real(product.parameters.value);
  p.format = product.format;
  return work_of(p, device);
}

}  // namespace

double touched_experts(std::int64_t routed, std::int64_t per_token, std::int64_t rows) {
  if (rows == 1) return real(per_token);
  const double idle = 1 - real(per_token) / real(routed);
  return real(routed) * (1 - std::pow(idle, real(rows)));
}

Work work_of(const MatrixProduct& product, std::int64_t rows, const DeviceSpec& device) {
  return work_of(Product{rows, product.n, product.k, real(product.copies),
                         real(product.parameters.value), product.format},
                 device);
}

// Routers are not even: at the least half of the experts take all rows (assumed), at the most no
// two rows share an expert until all have one.
WorkRange work_of(const ExpertProduct& product, std::int64_t rows, const DeviceSpec& device) {
  const std::int64_t half = std::max(product.routed / 2, product.per_token);
  const double expected = touched_experts(product.routed, product.per_token, rows);
  const double least = touched_experts(half, product.per_token, rows);
  const double most = std::min(real(product.routed), real(rows) * real(product.per_token));
  WorkRange range;
  range.expected = experts_work(product, expected, rows, device);
  range.exact = rows == 1;
  if (range.exact) return range;
  range.least = experts_work(product, least, rows, device);
  range.most = experts_work(product, most, rows, device);
  return range;
}

}  // namespace indexpool::step
