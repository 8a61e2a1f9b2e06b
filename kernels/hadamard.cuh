// The Hadamard rotation of a head spread over D / 8 lanes, and the reductions over such a group.
#pragma once

#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

consteval int lanes_of(int head_dim) { return head_dim / channels_per_lane; }

// D^-0.5 rounded to f32.
template <int D>
consteval float inverse_root() {
  static_assert(D == 32 || D == 64 || D == 128);
  return D == 32 ? 0.17677669529663687f : D == 64 ? 0.125f : 0.08838834764831845f;
}

// Sylvester order: butterflies (a, b) -> (a + b, a - b) with strides 1, 2, 4 inside a lane, then 8,
// 16, ... between lanes, in f32; then times D^-0.5. All lanes of the warp take part.
template <int D>
IP_DEVICE void rotate(float (&x)[channels_per_lane]) {
  for (int stride = 1; stride < channels_per_lane; stride *= 2) {
    for (int i = 0; i < channels_per_lane; ++i) {
      if ((i & stride) != 0) continue;
      const float a = x[i], b = x[i + stride];
      x[i] = ip::add(a, b);
      x[i + stride] = ip::sub(a, b);
    }
  }
  const int lane = ip::lane_index();
  for (int distance = 1; distance < lanes_of(D); distance *= 2) {
    const bool upper = (lane & distance) != 0;
    for (int i = 0; i < channels_per_lane; ++i) {
      const float other = ip::shuffle_xor(ip::full_mask, x[i], distance);
      x[i] = upper ? ip::sub(other, x[i]) : ip::add(x[i], other);
    }
  }
  for (int i = 0; i < channels_per_lane; ++i) x[i] = ip::mul(x[i], inverse_root<D>());
}

// The largest over the group; every lane gets it. A number beats NaN.
template <int D>
IP_DEVICE float group_max(float value) {
  for (int distance = 1; distance < lanes_of(D); distance *= 2)
    value = ip::max_number(value, ip::shuffle_xor(ip::full_mask, value, distance));
  return value;
}

// Sums over the group by a tree; addition commutes, so every lane gets the same bits.
template <int D>
IP_DEVICE float group_sum(float value) {
  for (int distance = 1; distance < lanes_of(D); distance *= 2)
    value = ip::add(value, ip::shuffle_xor(ip::full_mask, value, distance));
  return value;
}
template <int D>
IP_DEVICE std::uint32_t group_sum(std::uint32_t value) {
  for (int distance = 1; distance < lanes_of(D); distance *= 2)
    value += ip::shuffle_xor(ip::full_mask, value, distance);
  return value;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
