// Slots of [G, m] dealt to lanes, a group's in neighbouring ones as in role_weights.cuh, and the
// sums of what they give: one row of a few for each warp.
#pragma once

#include <bit>

#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct SlotParams {
  std::int64_t group_count;
  std::int32_t index_kpool, lanes, lanes_log2;
};
inline SlotParams slot_params(std::int64_t group_count, std::int32_t index_kpool) {
  const int lanes = role_lanes(index_kpool);
  return {group_count, index_kpool, lanes, std::countr_zero(static_cast<unsigned>(lanes))};
}
inline std::int64_t slot_blocks(const SlotParams& p) {
  return blocks_for(p.group_count, policy_threads / p.lanes);
}

struct SlotPlace {
  std::int64_t warp, group, at;  // `at`: of [G, m]
  int i;
  bool active;
  bool warp_active;  // a warp without groups returns at once
};
template <int Threads>
IP_DEVICE SlotPlace slot_place(const SlotParams& p) {
  const std::int64_t thread = ip::block_index() * Threads + ip::thread_index();
  const std::int64_t first = thread - ip::lane_index(), group = thread >> p.lanes_log2;
  const int i = ip::lane_index() & (p.lanes - 1);
  return {first >> 5,
          group,
          group * p.index_kpool + i,
          i,
          group < p.group_count && i < p.index_kpool,
          first >> p.lanes_log2 < p.group_count};
}

// Each of N terms by the tree over all lanes; then lane t stores the t-th sum.
template <int N>
IP_DEVICE void store_term_sums(const float (&terms)[N], float* rows, std::int64_t warp) {
  float mine = 0;
  IP_UNROLL
  for (int t = 0; t < N; ++t) {
    const float sum = sum_over(32, terms[t]);
    if (ip::lane_index() == t) mine = sum;
  }
  if (ip::lane_index() < N) ip::store_global(rows + warp * N + ip::lane_index(), mine);
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
