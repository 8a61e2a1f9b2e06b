// What both kernels of the feedback share: a sum over the block.
#pragma once

#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// Of all threads' values, which every thread gets; whole numbers, so in any order. Once a launch.
struct alignas(16) FourCounts {
  std::uint32_t x[4];
};
IP_DEVICE std::uint32_t sum_over_block(std::uint32_t value) {
  auto* const of_warps = reinterpret_cast<std::uint32_t*>(ip::dynamic_shared());
  const std::uint32_t of_warp = sum_over(32, value);
  if (ip::lane_index() == 0) ip::store_shared(of_warps + ip::warp_index(), of_warp);
  ip::sync_block();
  std::uint32_t sum = 0;
  IP_UNROLL
  for (int w = 0; w < feedback_warps; w += 4) {
    const FourCounts four = ip::load_shared(reinterpret_cast<const FourCounts*>(of_warps + w));
    sum += four.x[0] + four.x[1] + four.x[2] + four.x[3];
  }
  return sum;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
