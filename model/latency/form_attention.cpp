// Attention over a paged cache: a new token of each sequence (decode), or whole prompts (prefill).
#include <algorithm>
#include <cmath>
#include <limits>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

constexpr double tile = 128;         // keys of a step, and rows of a prefill's block
constexpr double least_rows = 16;    // of a matrix instruction
constexpr double partial_bytes = 8;  // of an output element, written and read again in binary32
constexpr std::int64_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128};

double bf16_peak(const DeviceSpec& device) {
  const auto peak = device.matrix_flop_per_s.find("bf16");
  require(peak != device.matrix_flop_per_s.end(), "a device without a bf16 matrix rate");
  return peak->second.value;
}

namespace decode {
enum : std::size_t { fixed, block, step, split_cost, hbm_share };

// A block takes all query heads of a key head; only grouped heads are split along the keys.
KernelTime time_of(const KernelShape& any, const DeviceSpec& device, std::span<const double> c) {
  const CacheShape& shape = std::get<CacheShape>(any);
  const double keys = entry_counts(shape).most;
  const double steps = std::ceil(keys / tile);
  const double blocks = static_cast<double>(shape.sequences * shape.key_heads);
  const double bytes = blocks * keys * static_cast<double>(shape.entry_bytes);
  const double hbm = bytes / (device.hbm_read_bytes_per_s.value * c[hbm_share]);
  KernelTime best;
  best.time = std::numeric_limits<double>::infinity();
  for (const std::int64_t split : splits) {
    if (split > 1 && (shape.heads == shape.key_heads || static_cast<double>(split) > steps)) break;
    const double each = static_cast<double>(split);
    const double turns = std::ceil(blocks * each / (2 * static_cast<double>(device.sm_count)));
    KernelTime out;
    out[Resource::fixed] = device.graph_launch_s.value + c[fixed] + turns * c[block];
    if (split > 1) {
      out[Resource::fixed] +=
          c[split_cost] + static_cast<double>(shape.sequences * shape.heads * shape.head_dim) *
                              each * partial_bytes / device.l2_bytes_per_s.value;
    }
    out[Resource::serial] = turns * std::ceil(steps / each) * c[step];
    out[Resource::hbm] = hbm;
    out.time = out[Resource::fixed] + overlapped(out[Resource::serial], hbm);
    if (out.time < best.time) best = out;
  }
  return best;
}

constexpr FormConstant constants[] = {
    {"fixed_s", 6e-6, 1e-7, 5e-5, "beyond the launch"},
    {"block_s", 5e-6, 1e-8, 5e-5, "of a turn of blocks: page table, first loads, last stores"},
    {"step_s", 2.5e-6, 1e-8, 5e-5, "of a block's 128 keys, one step after the other"},
    {"split_s", 6e-6, 1e-7, 5e-5, "of the kernel that joins splits"},
    {"hbm_share", 0.9, 0.3, 1.1, "of the device's read rate"}};
}  // namespace decode

namespace prefill {
enum : std::size_t { fixed, block, step, matrix_share, hbm_share };

KernelTime time_of(const KernelShape& any, const DeviceSpec& device, std::span<const double> c) {
  const CacheShape& shape = std::get<CacheShape>(any);
  const auto rows = static_cast<double>(shape.rows_per_sequence);
  const double padded =
      std::min(std::ceil(rows / tile) * tile, std::ceil(rows / least_rows) * least_rows);
  const auto heads = static_cast<double>(shape.sequences * shape.heads);
  // Row i sees the context and the rows up to its own, in whole tiles.
  const double pairs =
      heads * padded *
      (static_cast<double>(shape.context) + (padded + (rows > tile ? tile : 0)) / 2);
  const double turns =
      std::ceil(heads * std::ceil(rows / tile) / (2 * static_cast<double>(device.sm_count)));
  const double element = static_cast<double>(shape.entry_bytes) / 2;  // key or value of a head
  const double bytes = 2 * heads * rows * element +
                       static_cast<double>(shape.sequences * shape.key_heads * shape.entry_bytes) *
                           entry_counts(shape).most;
  KernelTime out;
  out[Resource::fixed] = device.graph_launch_s.value + c[fixed] + turns * c[block];
  out[Resource::serial] = std::ceil(entry_counts(shape).most / tile) * c[step];
  out[Resource::hbm] = bytes / (device.hbm_read_bytes_per_s.value * c[hbm_share]);
  out[Resource::matrix] =
      4 * pairs * static_cast<double>(shape.head_dim) / (bf16_peak(device) * c[matrix_share]);
  out.time = out[Resource::fixed] +
             overlapped(out[Resource::serial], out[Resource::hbm], out[Resource::matrix]);
  return out;
}

constexpr FormConstant constants[] = {
    {"fixed_s", 4e-6, 1e-7, 5e-5, "beyond the launch"},
    {"block_s", 3e-6, 1e-9, 5e-5, "of a turn of blocks"},
    {"step_s", 4e-6, 1e-8, 5e-5, "of 128 keys of the longest block"},
    {"matrix_share", 0.55, 0.1, 1.1, "of the device's bf16 rate"},
    {"hbm_share", 0.4, 0.05, 1.1, "of the device's read rate"}};
}  // namespace prefill

}  // namespace

const KernelForm decode_attention_form = {
    "decode_attention",
    "graph launch + fixed + turns x block + overlap(turns x steps x step, cache / HBM) [+ joining "
    "splits], least over splits",
    {"graph launch + fixed_s + turns x block_s + split_s and partial outputs / L2",
     "cache / (read rate x hbm_share)", "", "", "turns x steps of 128 keys x step_s"},
    decode::constants,
    decode::time_of};

const KernelForm prefill_attention_form = {
    "prefill_attention",
    "graph launch + fixed + turns x block + overlap(steps of the longest block, bytes / HBM, FLOP "
    "/ bf16 rate)",
    {"graph launch + fixed_s + turns x block_s",
     "(queries + outputs + cache) / (read rate x hbm_share)", "",
     "4 x pairs of a query and a key, in whole tiles, x head_dim / (bf16 rate x matrix_share)",
     "steps of 128 keys x step_s"},
    prefill::constants,
    prefill::time_of};

}  // namespace indexpool
