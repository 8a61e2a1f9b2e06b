// What becomes of a pooled vector: rounded to mode.pooled, then stored as mode.cache or quantised
// with one scale, and summed for fault detection. The format is known at run time, alike for all
// lanes.
#pragma once

#include "indexpool/kernels/policy/group.cuh"
#include "indexpool/kernels/pool_checksum.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct PooledFormat {
  DType pooled, cache;
  ScaleRule scale;
  std::byte* to;  // [G, D]
  float* scales;  // [G]
  PoolChecksum* checksums;
};

template <int Pieces>
using Pooled = float[Pieces][channels_per_lane];

template <DType T, int Pieces>
IP_DEVICE void round_pooled(Pooled<Pieces>& x) {
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p) {
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) x[p][i] = rounded_to<T>(x[p][i]);
  }
}

// The pair over values: sum_c y_c and sum_c (c + 1) / D y_c. A lane adds its channels in order,
// pieces ascending; then the tree.
template <int Pieces>
IP_DEVICE void sum_values(const Pooled<Pieces>& y, const GroupParams& p, int lane,
                          PoolChecksum& sums) {
  const float step = ip::div(1.0f, static_cast<float>(p.head_dim));  // a power of two
  float sum = 0, weighted = 0;
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int first = piece * piece_channels + lane * channels_per_lane;
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) {
      sum = ip::add(sum, y[piece][i]);
      const float place = ip::mul(static_cast<float>(first + i + 1), step);  // exact
      weighted = ip::fma(place, y[piece][i], weighted);
    }
  }
  sums.sum = sum_over(p.lanes, sum);
  sums.weighted_sum = sum_over(p.lanes, weighted);
}

template <int Pieces>
IP_DEVICE float largest_magnitude(const Pooled<Pieces>& x, int lanes) {
  float amax = 0;
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p) {
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i)
      amax = ip::max_number(amax, ip::float_of(ip::bits_of(x[p][i]) & 0x7fffffff));
  }
  return max_over(lanes, amax);
}

// The codes of eight channels.
template <DType Cache, ScaleRule Rule>
IP_DEVICE Codes8 codes_of(const float (&x)[channels_per_lane], float scale) {
  std::uint32_t words[2] = {0, 0};
  IP_UNROLL
  for (int i = 0; i < channels_per_lane; ++i)
    words[i / 4] |= static_cast<std::uint32_t>(code_of<Cache>(scaled<Rule>(x[i], scale)))
                    << 8 * (i % 4);
  return {words[0], words[1]};
}

// Over the group. `exact` is of this lane's channels.
IP_DEVICE void sum_exact(const ExactSums& exact, int lanes, PoolChecksum& sums) {
  sums.exact_sum = sum_over(lanes, exact.plain);
  sums.exact_weighted_sum = sum_over(lanes, exact.weighted);
}

// Quantises, stores codes and scale; the exact pair of the checksums. All lanes take part.
template <DType Cache, ScaleRule Rule, int Pieces>
IP_DEVICE void store_codes(const Pooled<Pieces>& x, const GroupParams& p, const GroupPlace& place,
                           const PooledFormat& format, PoolChecksum& sums) {
  const float scale = scale_of<Cache, Rule>(largest_magnitude<Pieces>(x, p.lanes));
  ExactSums exact = {0, 0};
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int channel = piece * piece_channels + place.lane * channels_per_lane;
    const Codes8 codes = codes_of<Cache, Rule>(x[piece], scale);
    if (place.active)
      ip::store_global(reinterpret_cast<Codes8*>(format.to + place.group * p.head_dim + channel),
                       codes);
    if (format.checksums != nullptr)
      exact += sums_of_codes<Cache>(codes, channel / channels_per_lane);
  }
  if (place.active && place.lane == 0) ip::store_global(format.scales + place.group, scale);
  if (format.checksums == nullptr) return;
  sum_exact(exact, p.lanes, sums);
  sums.exact_sum += scrambled(ip::bits_of(scale));
}

// Stores the elements; the exact pair of the checksums. All lanes take part.
template <DType Cache, int Pieces>
IP_DEVICE void store_elements(const Pooled<Pieces>& x, const GroupParams& p,
                              const GroupPlace& place, const PooledFormat& format,
                              PoolChecksum& sums) {
  std::byte* const row = format.to + place.group * (p.head_dim * bytes_of(Cache));
  ExactSums exact = {0, 0};
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int channel = piece * piece_channels + place.lane * channels_per_lane;
    const Piece<Cache> elements = pack<Cache>(x[piece]);
    if (place.active) store_piece<Cache>(row + channel * bytes_of(Cache), elements);
    if (format.checksums != nullptr)
      exact += sums_of_elements<Cache>(elements, channel / channels_per_lane, p.head_dim);
  }
  if (format.checksums != nullptr) sum_exact(exact, p.lanes, sums);
}

// y, before any rounding; it is used up. All lanes of the warp take part.
template <int Pieces>
IP_DEVICE void store_pooled(Pooled<Pieces>& y, const GroupParams& p, const GroupPlace& place,
                            const PooledFormat& format) {
  PoolChecksum sums = {0, 0, 0, 0};
  if (format.checksums != nullptr) sum_values<Pieces>(y, p, place.lane, sums);
  if (format.pooled == DType::bf16) round_pooled<DType::bf16, Pieces>(y);
  if (format.pooled == DType::f16) round_pooled<DType::f16, Pieces>(y);
  if (format.cache == DType::i8)
    store_codes<DType::i8, ScaleRule::amax, Pieces>(y, p, place, format, sums);
  else if (format.cache == DType::e4m3 && format.scale == ScaleRule::amax)
    store_codes<DType::e4m3, ScaleRule::amax, Pieces>(y, p, place, format, sums);
  else if (format.cache == DType::e4m3)
    store_codes<DType::e4m3, ScaleRule::power_of_two, Pieces>(y, p, place, format, sums);
  else if (format.cache == DType::f32)
    store_elements<DType::f32, Pieces>(y, p, place, format, sums);
  else if (format.cache == DType::f16)
    store_elements<DType::f16, Pieces>(y, p, place, format, sums);
  else
    store_elements<DType::bf16, Pieces>(y, p, place, format, sums);
  if (format.checksums != nullptr && place.active && place.lane == 0)
    store_record(format.checksums + place.group, sums);
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
