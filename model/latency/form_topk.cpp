// Top-k of each row by one block: histogram passes over the row, then a short sort. Long rows may
// take another path, a cluster of blocks or one more pass.
#include <algorithm>
#include <cmath>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/latency/forms.hpp"

namespace indexpool {
namespace {

enum : std::size_t {
  fixed,
  row_cost,
  entry,
  near_entries,
  far_entry,
  short_row,
  rows_per_sm,
  long_row,
  long_entry,
  long_from
};

double row_seconds(double entries, std::span<const double> c) {
  if (entries >= c[long_from]) return c[long_row] + c[long_entry] * entries;
  return c[row_cost] + c[entry] * std::min(entries, c[near_entries]) +
         c[far_entry] * std::max(entries - c[near_entries], 0.0);
}

// Rows with more than k entries: the others are copied.
double selecting_rows(const EntryCounts& entries, double topk) {
  if (entries.most - entries.least < 1) return entries.most > topk ? entries.rows : 0;
  const double share =
      (entries.most - std::max(entries.least, topk)) / (entries.most - entries.least);
  return entries.rows * std::clamp(share, 0.0, 1.0);
}

KernelTime topk_time(const KernelShape& any, const DeviceSpec& device, std::span<const double> c) {
  const CacheShape& shape = std::get<CacheShape>(any);
  const EntryCounts entries = entry_counts(shape);
  const double topk = static_cast<double>(shape.topk);
  const double selecting = selecting_rows(entries, topk);
  const double mean = (std::max(entries.least, topk) + entries.most) / 2;
  const double slots = static_cast<double>(device.sm_count) * c[rows_per_sm];
  KernelTime out;
  out[Resource::fixed] =
      device.graph_launch_s.value + c[fixed] + (entries.most > topk ? c[row_cost] : c[short_row]);
  out[Resource::serial] = selecting > 0 ? row_seconds(entries.most, c) - c[row_cost] : 0;
  out[Resource::matrix] =
      (selecting * row_seconds(mean, c) + (entries.rows - selecting) * c[short_row]) / slots;
  out[Resource::l2] = selecting * mean * 4 / device.l2_bytes_per_s.value;
  const double alone = selecting > 0 ? row_seconds(entries.most, c) : c[short_row];
  out.time = device.graph_launch_s.value + c[fixed] +
             overlapped(alone, out[Resource::matrix], out[Resource::l2]);
  return out;
}

constexpr double near_tried[] = {1024, 8192, 32768};
constexpr double per_sm_tried[] = {0.5, 1.5};
constexpr double long_tried[] = {1e15, 4096, 8192, 16384, 32768, 65536};

constexpr FormConstant constants[] = {
    {"fixed_s", 1e-6, 1e-9, 2e-5, "beyond the launch: first block, last stores"},
    {"row_s", 2e-6, 1e-9, 1e-3, "of a row that selects: clearing, scans, the final sort"},
    {"entry_s", 3e-10, 1e-13, 1e-7, "each of the first entries of a row"},
    {"near_entries", 8192, 64, 1e6, "how many entries are the first", near_tried},
    {"far_entry_s", 5e-10, 1e-13, 1e-7, "each further entry"},
    {"short_row_s", 4e-7, 1e-9, 1e-4, "of a row that has no more than k entries"},
    {"rows_per_sm", 1, 0.03, 32, "rows an SM works on beside each other", per_sm_tried},
    {"long_row_s", 6e-6, 1e-9, 1e-3, "of a row on the path of long rows"},
    {"long_entry_s", 1e-10, 1e-13, 1e-7, "each entry on the path of long rows"},
    {"long_from_entries", 1e15, 1, 1e16, "where the path of long rows starts", long_tried, false}};

}  // namespace

const KernelForm row_topk_form = {
    "row_topk",
    "graph launch + fixed + overlap(longest row, all rows / (SMs x "
    "rows per SM), entries / L2); a row: row + "
    "entries x entry time, in two pieces, or the long path's",
    {"graph launch + fixed_s + one row's row_s", "", "rows x entries x 4 B / L2 rate",
     "all rows' times / (SMs x rows_per_sm)", "entries of the longest row, one after the other"},
    constants,
    topk_time};

}  // namespace indexpool
