// When a vector was accessed (article D): its attention mass exceeds the mean of the attended.
#pragma once

#include "indexpool/kernels/device.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

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
