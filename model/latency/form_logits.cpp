// Logits of query rows against a paged cache, the entries of all rows dealt to the SMs in pieces.
#include <algorithm>
#include <cmath>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

constexpr double piece_entries = 256;  // of one turn of an SM, as the engine's planner deals them
constexpr double logit_bytes = 4;

enum : std::size_t { fixed, row_cost, piece, doubling, matrix_share, l2_share, store_share };

// Rows that are their own sequences read the cache each; rows of one sequence find it in the L2.
KernelTime logits_time(const KernelShape& any, const DeviceSpec& device,
                       std::span<const double> c) {
  const CacheShape& shape = std::get<CacheShape>(any);
  const EntryCounts entries = entry_counts(shape);
  const double mean = (entries.least + entries.most) / 2;
  const double cached =
      static_cast<double>(shape.sequences) * entries.most * static_cast<double>(shape.entry_bytes);
  const double pieces_a_row = std::ceil(std::max(mean, 1.0) / piece_entries);
  const double pieces = entries.rows * pieces_a_row;
  const double turns = std::ceil(pieces / static_cast<double>(device.sm_count));
  // Twice the bf16 rate, as the units have it: a device's own e4m3 rate is that of mma.sync, which
  // Hopper makes of f16 instructions, and these kernels use wgmma.
  const auto bf16 = device.matrix_flop_per_s.find("bf16");
  require(bf16 != device.matrix_flop_per_s.end(), "a device without a bf16 matrix rate");
  const double peak = 2 * bf16->second.value;
  const double flop = 2 * static_cast<double>(shape.heads * shape.head_dim) * entries.rows * mean;
  const double read = entries.rows * mean * static_cast<double>(shape.entry_bytes);
  const double written = entries.rows * mean * logit_bytes;
  const double resident = resident_share_at(Bytes(std::llround(cached)), device, Corner::expected);

  KernelTime out;
  out[Resource::fixed] = device.graph_launch_s.value + c[fixed] + entries.rows * c[row_cost] +
                         std::log2(pieces_a_row) * c[doubling];
  out[Resource::serial] = (turns - 1) * c[piece];
  out[Resource::hbm] = cached * (1 - resident) / device.hbm_read_bytes_per_s.value +
                       written / (device.hbm_write_bytes_per_s.value * c[store_share]);
  out[Resource::l2] = read / (device.l2_bytes_per_s.value * c[l2_share]);
  out[Resource::matrix] = flop / (peak * c[matrix_share]);
  out.time = out[Resource::fixed] + overlapped(out[Resource::serial], out[Resource::hbm],
                                               out[Resource::l2], out[Resource::matrix]);
  return out;
}

constexpr FormConstant constants[] = {
    {"fixed_s", 2e-6, 1e-8, 2e-5, "one piece's latency: page table, first loads, reduction"},
    {"row_s", 3e-9, 1e-12, 1e-6, "of dealing a row: the planner's metadata, read by every block"},
    {"piece_s", 4.5e-7, 1e-9, 1e-5, "each further piece of 256 entries of the busiest SM"},
    {"row_doubling_s", 1e-7, 1e-10, 5e-6,
     "each doubling of the pieces of a row: the last of them ends later"},
    {"matrix_share", 0.7, 0.05, 2, "of twice the device's bf16 rate"},
    {"l2_share", 1, 0.2, 2, "of the device's L2 rate"},
    {"store_share", 0.8, 0.1, 4, "of the device's write rate, for logits"}};

}  // namespace

const KernelForm paged_logits_form = {
    "paged_logits",
    "graph launch + fixed + rows x row + log2(pieces of a row) x doubling + overlap((turns - 1) x "
    "piece, cache beyond L2 / HBM + "
    "logits / write rate, rows x entries / L2, FLOP / FP8 rate)",
    {"graph launch + fixed_s + rows x row_s + log2(pieces of a row) x row_doubling_s",
     "cache x (1 - share resident in L2) / read rate + logits / (write rate x store_share)",
     "rows x entries x entry_bytes / (L2 rate x l2_share)",
     "2 x heads x head_dim x rows x entries / (2 x bf16 rate x matrix_share)",
     "(pieces of the busiest SM - 1) x piece_s"},
    constants,
    logits_time};

}  // namespace indexpool
