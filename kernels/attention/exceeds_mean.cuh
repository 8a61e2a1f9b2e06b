// When a vector was accessed (article D): its attention mass exceeds the mean of the attended.
#pragma once

#include "indexpool/kernels/device.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// mass * attended > 1 without a rounding, for a mass that is neither negative nor NaN. It is
// m 2^(e - 150), m below 2^24, and the count below 2^31: their product is below 2^55, compared with
// 2^(150 - e). Zeros and subnormals are far below any mean.
IP_DEVICE bool exceeds_mean(float mass, std::uint32_t attended) {
  const std::uint32_t bits = ip::bits_of(mass) & 0x7fffffffu;  // -0 is 0
  const std::uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const int shift = 150 - static_cast<int>(bits >> 23);
  if (shift > 62) return false;
  return shift < 0 || mantissa * attended > std::uint64_t{1} << shift;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
