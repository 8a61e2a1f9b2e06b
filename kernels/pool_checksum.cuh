// The sums that a pool's kernel takes of its pool (args.hpp, PoolChecksum).
#pragma once

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/quantise.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// The finaliser of MurmurHash3.
IP_DEVICE std::uint32_t scrambled(std::uint32_t word) {
  word = (word ^ (word >> 16)) * 0x85ebca6bu;
  word = (word ^ (word >> 13)) * 0xc2b2ae35u;
  return word ^ (word >> 16);
}

// A code's weight is the product of both: of its place among its lane's eight, a constant once the
// loop is unrolled, and of the lane's place in the group.
IP_DEVICE std::uint32_t weight_in_lane(int i) {
  const auto place = static_cast<std::uint32_t>(i);
  return (scrambled(place) << 4) + 2 * place + 1;
}
IP_DEVICE std::uint32_t weight_of_lane(int lane) {
  const auto place = static_cast<std::uint32_t>(lane);
  return (scrambled(place) << 12) + 16 * place + 1;
}

// Of y and of what it was stored as, over the group. `channel`: this lane's first.
template <class I>
IP_DEVICE PoolChecksum checksum_of(const float (&y)[channels_per_lane], const Quantised& stored,
                                   int channel) {
  constexpr float step = 1.0f / I::head_dim;
  const float first = ip::mul(static_cast<float>(channel), step);
  float sum = 0, weighted = 0;
  std::uint32_t exact = 0, exact_weighted = 0;
  for (int i = 0; i < channels_per_lane; ++i) {
    const float position = ip::add(first, static_cast<float>(i + 1) * step);  // exact
    sum = ip::add(sum, y[i]);
    weighted = ip::fma(position, y[i], weighted);
    if constexpr (I::quantised) {
      const auto units = static_cast<std::uint32_t>(code_units<I::cache>(code_at(stored.codes, i)));
      exact += units;
      exact_weighted += weight_in_lane(i) * units;
    }
  }
  PoolChecksum result = {group_sum<I::head_dim>(sum), group_sum<I::head_dim>(weighted), 0, 0};
  if constexpr (I::quantised) {
    result.exact_sum = group_sum<I::head_dim>(exact) + scrambled(ip::bits_of(stored.scale));
    const std::uint32_t weight = weight_of_lane(ip::lane_index() % lanes_of(I::head_dim));
    result.exact_weighted_sum = group_sum<I::head_dim>(weight * exact_weighted);
  }
  return result;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
