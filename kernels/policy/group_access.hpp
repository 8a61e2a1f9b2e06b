// What a warp's accesses to its groups of vectors cost. As in the kernels, the vectors of a group
// are numbered j: the present ones in order, then the absent ones.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/policy_args.hpp"

namespace indexpool::kernels {

// One warp instruction: the stretches of memory that its lanes touch. Equal ones count once;
// different ones do not overlap.
class WarpInstruction {
 public:
  void touch(std::int64_t address, std::int64_t bytes);
  GlobalAccess take();  // distinct bytes and sectors; empty again

 private:
  std::vector<std::int64_t> addresses_, sectors_;
  std::int64_t bytes_ = 0;
};

// Eight elements a lane, 16 bytes an instruction: f32 takes two, each of which touches every sector
// of the row. Rows start on sectors.
GlobalAccess row_access(DType dtype, std::int64_t head_dim);

// The groups of a launch. Without the host's view: consecutive rows, all vectors present, a row of
// weights for each group.
struct GroupedAccess {
  const GroupedVectors& grouped;

  std::int64_t lanes() const { return group_lanes(grouped.head_dim); }
  std::int64_t per_warp() const { return 32 / lanes(); }
  std::int64_t warps() const { return blocks_for(grouped.group_count, per_warp()); }
  std::int64_t tree_steps() const;  // exchanges of a reduction over a group
  VectorGroup group(std::int64_t g) const;
  std::int64_t present(std::int64_t g) const { return grouped.index_kpool - group(g).absent; }
  std::int64_t place(std::int64_t g, std::int64_t j) const;
  std::int64_t present_vectors() const;  // of all groups
  std::int64_t distinct_rows() const;    // that their present vectors lie in
  std::int64_t distinct_sets() const;
};

// Which words of [rows, m] a warp's lanes take: all of a group the same one, vector by vector, or
// one each, as many at a time as the group has lanes.
enum class WordPattern { together, each_its_own };
enum class WordRow { of_group, of_set, shared };  // row g, weight_set, or one row for all

// Accesses of the warp that has groups [first, end).
class WarpGroups {
 public:
  WarpGroups(const GroupedAccess& access, std::int64_t first, std::int64_t end)
      : access_(access), first_(first), end_(end) {}

  // The j-th present vectors for all j, `row` each.
  GlobalAccess vectors(const GlobalAccess& row) const;
  GlobalAccess words(const void* base, WordRow row, WordPattern pattern, bool absent_too) const;
  // One element of each group, by one lane or all of them.
  GlobalAccess elements(const void* base, std::int64_t bytes) const;

 private:
  const GroupedAccess& access_;
  std::int64_t first_, end_;
};

// Sum of f(first group, end) -> Traffic over a launch's warps of `per_warp` groups. Without the
// host's view warps differ only by where words lie in their sectors, which comes back after eight.
template <class F>
Traffic over_warps(const GroupedVectors& grouped, std::int64_t per_warp, F&& f) {
  constexpr std::size_t period = 8;
  std::vector<Traffic> seen;
  Traffic sum;
  for (std::int64_t first = 0; first < grouped.group_count; first += per_warp) {
    const std::int64_t left = grouped.group_count - first;
    const auto warp = static_cast<std::size_t>(first / per_warp);
    const bool known = grouped.host_groups == nullptr && warp >= period && left >= per_warp;
    const Traffic one =
        known ? seen[warp % period] : f(first, first + (left < per_warp ? left : per_warp));
    if (seen.size() < period) seen.push_back(one);
    sum += one;
  }
  return sum;
}

}  // namespace indexpool::kernels
