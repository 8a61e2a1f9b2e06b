#include "indexpool/kernels/policy/group_access.hpp"

#include <algorithm>
#include <bit>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

bool insert(std::vector<std::int64_t>& seen, std::int64_t value) {
  if (std::find(seen.begin(), seen.end(), value) != seen.end()) return false;
  seen.push_back(value);
  return true;
}

std::int64_t distinct(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return std::unique(values.begin(), values.end()) - values.begin();
}

}  // namespace

void WarpInstruction::touch(std::int64_t address, std::int64_t bytes) {
  if (!insert(addresses_, address)) return;
  bytes_ += bytes;
  for (std::int64_t s = address / sector_bytes; s * sector_bytes < address + bytes; ++s)
    insert(sectors_, s);
}

GlobalAccess WarpInstruction::take() {
  const GlobalAccess access = {bytes_, std::ssize(sectors_)};
  addresses_.clear(), sectors_.clear(), bytes_ = 0;
  return access;
}

GlobalAccess row_access(DType dtype, std::int64_t head_dim) {
  const std::int64_t bytes = head_dim * info(dtype).bytes;
  const std::int64_t instructions = dtype == DType::f32 ? 2 : 1;
  return {bytes, instructions * bytes / sector_bytes};
}

std::int64_t GroupedAccess::tree_steps() const {
  return std::countr_zero(static_cast<std::uint64_t>(lanes()));
}

VectorGroup GroupedAccess::group(std::int64_t g) const {
  if (grouped.host_groups != nullptr) return grouped.host_groups[g];
  return {g * grouped.index_kpool, static_cast<std::int32_t>(g), 0};
}

std::int64_t GroupedAccess::place(std::int64_t g, std::int64_t j) const {
  return j < present(g) ? group(g).absent + j : j - present(g);
}

std::int64_t GroupedAccess::present_vectors() const {
  if (grouped.host_groups == nullptr) return grouped.group_count * grouped.index_kpool;
  std::int64_t count = 0;
  for (std::int64_t g = 0; g < grouped.group_count; ++g) count += present(g);
  return count;
}

std::int64_t GroupedAccess::distinct_rows() const {
  if (grouped.host_groups == nullptr) return present_vectors();
  std::vector<std::int64_t> rows;
  for (std::int64_t g = 0; g < grouped.group_count; ++g)
    for (std::int64_t j = 0; j < present(g); ++j)
      rows.push_back(group(g).first_row + grouped.offsets[place(g, j)]);
  return distinct(std::move(rows));
}

std::int64_t GroupedAccess::distinct_sets() const {
  if (grouped.host_groups == nullptr) return grouped.group_count;
  std::vector<std::int64_t> sets;
  for (std::int64_t g = 0; g < grouped.group_count; ++g) sets.push_back(group(g).weight_set);
  return distinct(std::move(sets));
}

GlobalAccess WarpGroups::vectors(const GlobalAccess& row) const {
  const GroupedVectors& grouped = access_.grouped;
  std::int64_t rows = 0;
  std::vector<std::int64_t> seen;
  for (std::int64_t j = 0; j < grouped.index_kpool; ++j) {
    for (std::int64_t g = first_; g < end_; ++g)
      if (j < access_.present(g))
        rows += insert(seen, access_.group(g).first_row + grouped.offsets[access_.place(g, j)]);
    seen.clear();
  }
  return rows * row;
}

GlobalAccess WarpGroups::words(const void* base, WordRow row, WordPattern pattern,
                               bool absent_too) const {
  const std::int64_t m = access_.grouped.index_kpool;
  const std::int64_t at_a_time = pattern == WordPattern::together ? 1 : access_.lanes();
  GlobalAccess sum;
  WarpInstruction instruction;
  for (std::int64_t j = 0; j < m; ++j) {
    for (std::int64_t g = first_; g < end_; ++g) {
      if (j >= access_.present(g) && !absent_too) continue;
      const std::int64_t at = row == WordRow::of_group ? g
                              : row == WordRow::of_set ? access_.group(g).weight_set
                                                       : 0;
      instruction.touch(address_of(base) + 4 * (at * m + access_.place(g, j)), 4);
    }
    if ((j + 1) % at_a_time == 0) sum += instruction.take();
  }
  sum += instruction.take();
  return sum;
}

GlobalAccess WarpGroups::elements(const void* base, std::int64_t bytes) const {
  const std::int64_t count = end_ - first_;
  return {count * bytes, sectors_of(address_of(base) + first_ * bytes, count * bytes)};
}

}  // namespace indexpool::kernels
