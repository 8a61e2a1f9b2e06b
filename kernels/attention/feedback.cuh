// What both kernels of the feedback share: a sum over the block, and the test for an access.
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

// mass * attended > 1 without a rounding: the mass is m 2^(e - 150), m below 2^24, and the count
// below 2^31, so that their product fits and is compared with 2^(150 - e). Not negative, not NaN.
IP_DEVICE bool exceeds_mean(float mass, std::uint32_t attended) {
  const std::uint32_t bits = ip::bits_of(mass) & 0x7fffffffu;  // -0 is 0
  const std::uint32_t field = bits >> 23, fraction = bits & 0x7fffffu;
  const std::uint64_t mantissa = field == 0 ? fraction : fraction | 0x800000u;
  const int shift = 150 - static_cast<int>(field == 0 ? 1 : field);
  if (shift > 62) return false;
  return shift < 0 || mantissa * attended > std::uint64_t{1} << shift;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
