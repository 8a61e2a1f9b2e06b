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

// A channel's weight is the product of both: of its place among its lane's eight, a constant once
// the loop is unrolled, and of the eight's place in the head.
IP_DEVICE std::uint32_t weight_in_lane(int i) {
  const auto place = static_cast<std::uint32_t>(i);
  return (scrambled(place) << 4) + 2 * place + 1;
}
IP_DEVICE std::uint32_t weight_of_lane(int lane) {
  const auto place = static_cast<std::uint32_t>(lane);
  return (scrambled(place) << 12) + 16 * place + 1;
}

// The exact pair, or a part of it.
struct ExactSums {
  std::uint32_t plain, weighted;

  IP_DEVICE void operator+=(const ExactSums& other) {
    plain += other.plain;
    weighted += other.weighted;
  }
};

// Of the eight channels from 8 * `lane` on; the scale's share is not in it.
template <DType Cache>
IP_DEVICE ExactSums sums_of_codes(const Codes8& codes, int lane) {
  ExactSums sums = {0, 0};
  IP_UNROLL
  for (int i = 0; i < channels_per_lane; ++i) {
    const auto units = static_cast<std::uint32_t>(code_units<Cache>(code_at(codes, i)));
    sums.plain += units;
    sums.weighted += weight_in_lane(i) * units;
  }
  sums.weighted *= weight_of_lane(lane);
  return sums;
}

// Bit 15 of both halves of the word to the other end of its half.
IP_DEVICE std::uint32_t halves_turned(std::uint32_t word) {
  return (word << 1 & 0xfffefffeu) | (word >> 15 & 0x00010001u);
}

// The same of elements that are not quantised.
template <DType Cache>
IP_DEVICE ExactSums sums_of_elements(const Piece<Cache>& piece, int lane, int head_dim) {
  const std::uint32_t of_low_halves = static_cast<std::uint32_t>(2 * head_dim + 1);
  ExactSums sums = {0, 0};
  IP_UNROLL
  for (int v = 0; v < Piece<Cache>::vectors; ++v) {
    const ip::Vec16& vector = piece.vector[v];
    const std::uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
    IP_UNROLL
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t bits =
          Cache == DType::f32 ? words[j] << 1 | words[j] >> 31 : halves_turned(words[j]);
      const std::uint32_t low = bits & 0xffff, high = bits >> 16;
      sums.plain += low + high;
      if constexpr (Cache == DType::f32)
        sums.weighted += weight_in_lane(4 * v + j) * (high + of_low_halves * low);
      else
        sums.weighted += weight_in_lane(2 * j) * low + weight_in_lane(2 * j + 1) * high;
    }
  }
  sums.weighted *= weight_of_lane(lane);
  return sums;
}

// Of y and of what it was stored as (Quantised, or a Piece), over the group. `channel`: this lane's
// first.
template <class I, class Stored>
IP_DEVICE PoolChecksum checksum_of(const float (&y)[channels_per_lane], const Stored& stored,
                                   int channel) {
  constexpr float step = 1.0f / I::head_dim;
  const float first = ip::mul(static_cast<float>(channel), step);
  float sum = 0, weighted = 0;
  for (int i = 0; i < channels_per_lane; ++i) {
    const float position = ip::add(first, static_cast<float>(i + 1) * step);  // exact
    sum = ip::add(sum, y[i]);
    weighted = ip::fma(position, y[i], weighted);
  }
  const int lane = ip::lane_index() % lanes_of(I::head_dim);
  ExactSums exact;
  if constexpr (I::quantised)
    exact = sums_of_codes<I::cache>(stored.codes, lane);
  else
    exact = sums_of_elements<I::cache>(stored, lane, I::head_dim);
  PoolChecksum result = {group_sum<I::head_dim>(sum), group_sum<I::head_dim>(weighted),
                         group_sum<I::head_dim>(exact.plain),
                         group_sum<I::head_dim>(exact.weighted)};
  if constexpr (I::quantised) result.exact_sum += scrambled(ip::bits_of(stored.scale));
  return result;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
