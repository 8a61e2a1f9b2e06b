// Matrix products in tiles, one tile per block, the k dimension perhaps split over blocks. The
// library chooses tile and split; here the fastest of them is taken.
#include <algorithm>
#include <cmath>
#include <limits>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

struct Tile {
  std::int64_t m, n;
};
constexpr Tile tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64},
                          {64, 128},  {64, 64},   {32, 128},  {32, 64},  {16, 64}};
constexpr std::int64_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr std::int64_t k_step = 64;          // of a main loop's iteration
constexpr std::int64_t least_split_k = 128;  // of a split's share
// Accumulators of 32-bit floats fill half the registers of an SM at 32768: blocks resident beside
// each other, at most four.
constexpr std::int64_t resident_accumulators = 32768;

enum : std::size_t { prologue, step, split_cost, hbm_share, l2_share, first_tile };

struct Device {
  double sms, flop_per_s_per_sm, l2;
};

// What one tile and split takes beyond launch and HBM.
KernelTime tiled(const GemmShape& shape, std::size_t which, std::int64_t split,
                 const Device& device, double hbm_seconds, std::span<const double> c) {
  const Tile tile = tiles[which];
  const std::int64_t blocks = ceil_div(shape.m, tile.m) * ceil_div(shape.n, tile.n) * split;
  const double steps = static_cast<double>(ceil_div(ceil_div(shape.k, split), k_step));
  const double busiest = std::ceil(static_cast<double>(blocks) / device.sms);
  const auto beside = static_cast<double>(
      std::clamp<std::int64_t>(resident_accumulators / (tile.m * tile.n), 1, 4));
  const double turns = std::ceil(busiest / beside);
  KernelTime out;
  out[Resource::hbm] = hbm_seconds;
  out[Resource::matrix] = busiest * steps * 2 * static_cast<double>(tile.m * tile.n * k_step) /
                          (device.flop_per_s_per_sm * c[first_tile + which]);
  out[Resource::serial] = turns * steps * c[step];
  out[Resource::l2] = static_cast<double>(blocks * (tile.m + tile.n)) * steps * k_step *
                      static_cast<double>(shape.element_bytes) / device.l2;
  out[Resource::fixed] = turns * c[prologue];
  if (split > 1) {  // partial sums in binary32, written and read again
    out[Resource::fixed] +=
        c[split_cost] + static_cast<double>(shape.m * shape.n * 4 * split) / device.l2;
  }
  out.time = out[Resource::fixed] + overlapped(out[Resource::hbm], out[Resource::matrix],
                                               out[Resource::serial], out[Resource::l2]);
  return out;
}

KernelTime gemm_time(const KernelShape& any, const DeviceSpec& spec, std::span<const double> c) {
  const GemmShape& shape = std::get<GemmShape>(any);
  const auto peak = spec.matrix_flop_per_s.find("bf16");
  require(peak != spec.matrix_flop_per_s.end(), "a device without a bf16 matrix rate");
  const Device device = {static_cast<double>(spec.sm_count),
                         peak->second.high / static_cast<double>(spec.sm_count),
                         spec.l2_bytes_per_s.value * c[l2_share]};
  const double bytes =
      static_cast<double>(shape.m * shape.k + shape.n * shape.k + shape.m * shape.n) *
      static_cast<double>(shape.element_bytes);
  const double hbm = bytes / (spec.hbm_read_bytes_per_s.value * c[hbm_share]);
  KernelTime best;
  best.time = std::numeric_limits<double>::infinity();
  for (std::size_t which = 0; which < std::size(tiles); ++which) {
    for (const std::int64_t split : splits) {
      if (split > 1 && shape.k < split * least_split_k) break;
      const KernelTime out = tiled(shape, which, split, device, hbm, c);
      if (out.time < best.time) best = out;
    }
  }
  best[Resource::fixed] += spec.graph_launch_s.value;
  best.time += spec.graph_launch_s.value;
  return best;
}

constexpr FormConstant constants[] = {
    {"prologue_s", 2.5e-6, 1e-7, 1e-5, "of a block: addresses, first loads, last stores"},
    {"k_step_s", 1.2e-7, 1e-9, 1e-6, "least time of 64 steps along k, however small the tile"},
    {"split_s", 2e-6, 1e-7, 1e-5, "of the reduction over splits of k"},
    {"hbm_share", 0.87, 0.4, 1.1, "of the device's read rate"},
    {"l2_share", 0.95, 0.4, 1.1, "of the device's L2 rate"},
    {"tile_256x128_share", 0.95, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_128x256_share", 0.95, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_128x128_share", 0.75, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_256x64_share", 0.76, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_64x256_share", 0.8, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_128x64_share", 0.78, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_64x128_share", 0.78, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_64x64_share", 0.9, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_32x128_share", 0.52, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_32x64_share", 0.48, 0.03, 1, "of the matrix units' peak in this tile"},
    {"tile_16x64_share", 0.26, 0.03, 1, "of the matrix units' peak in this tile"}};

}  // namespace

const KernelForm tile_gemm_form = {
    "tile_gemm",
    "graph launch + turns x prologue + overlap(bytes / HBM, tile loads / L2, FLOP of the busiest "
    "SM / tile rate, turns x steps x step time) [+ split reduction], least over tiles and splits",
    {"graph launch + turns of the busiest SM x prologue_s + split_s and partial sums / L2",
     "(mk + kn + mn) x element / (read rate x hbm_share)",
     "blocks x (tile m + tile n) x k x element / (L2 rate x l2_share)",
     "blocks of the busiest SM x 2 x tile x k / (peak per SM x the tile's share)",
     "turns x steps of 64 along k x k_step_s"},
    constants,
    gemm_time};

}  // namespace indexpool
