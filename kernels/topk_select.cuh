// Steps of the top-k selection of one row by one block: keys, digit counts, threshold, shares.
// What they move depends on the number of pools alone, never on the logits.
#pragma once

#include <cstdint>

#include "indexpool/kernels/device.cuh"
#include "indexpool/kernels/topk_geometry.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// Unsigned keys in the order of the numbers: -inf < ... < -0 = +0 < ... < +inf. NaN, whatever its
// sign, is 0, below the key of -inf.
inline constexpr std::uint32_t nan_key = 0;
IP_DEVICE std::uint32_t order_key(float logit) {
  const std::uint32_t bits = ip::bits_of(ip::add(logit, 0.0f));  // -0 + 0 = +0
  if ((bits & 0x7fffffffu) > 0x7f800000u) return nan_key;
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// The pools of a row that one warp goes through.
struct Segment {
  const float* logits;  // of its first pool
  std::int64_t first, count;
};

// Calls use(key) for every pool of a segment, in any order; `Vector`: rows start on 16 bytes.
template <bool Vector, class Use>
IP_DEVICE void for_each_key(const Segment& segment, Use&& use) {
  const int lane = ip::lane_index();
  std::int64_t i = 0;
  if constexpr (Vector) {
    const auto* const vectors = reinterpret_cast<const ip::Vec16*>(segment.logits) + lane;
    const auto use_vector = [&use](const ip::Vec16& v) {
      use(order_key(ip::float_of(v.x)));
      use(order_key(ip::float_of(v.y)));
      use(order_key(ip::float_of(v.z)));
      use(order_key(ip::float_of(v.w)));
    };
    for (; i + topk_vectors * 128 <= segment.count; i += topk_vectors * 128) {
      ip::Vec16 v[topk_vectors];
      IP_UNROLL for (int j = 0; j < topk_vectors; ++j) v[j] =
          ip::load_global(vectors + i / 4 + j * 32);
      IP_UNROLL for (int j = 0; j < topk_vectors; ++j) use_vector(v[j]);
    }
    for (; i + 128 <= segment.count; i += 128) use_vector(ip::load_global(vectors + i / 4));
  } else {
    for (; i + topk_singles * 32 <= segment.count; i += topk_singles * 32) {
      float v[topk_singles];
      IP_UNROLL for (int j = 0; j < topk_singles; ++j) v[j] =
          ip::load_global(segment.logits + i + j * 32 + lane);
      IP_UNROLL for (int j = 0; j < topk_singles; ++j) use(order_key(v[j]));
    }
  }
  for (i += lane; i < segment.count; i += 32) use(order_key(ip::load_global(segment.logits + i)));
}

IP_DEVICE void clear_counts(std::int32_t* counts) {
  for (int i = ip::thread_index(); i < topk_bins * 32 / 4; i += topk_threads)
    ip::store_shared(reinterpret_cast<ip::Vec16*>(counts) + i, ip::Vec16{0, 0, 0, 0});
}

// Counts the digit at `shift` of the keys that agree with `prefix` above it. Every lane has its own
// column, counts[digit * 32 + lane], so that no data makes two lanes of a warp meet in a bank; keys
// that do not count add 0.
template <bool Vector>
IP_DEVICE void count_digits(const Segment& segment, std::uint32_t prefix, int shift,
                            std::int32_t* counts) {
  const std::uint32_t known = shift == 24 ? 0u : ~0u << (shift + 8);
  std::int32_t* const column = counts + ip::lane_index();
  for_each_key<Vector>(segment, [&](std::uint32_t key) {
    ip::atomic_add_shared(column + (key >> shift & 0xffu) * 32,
                          ((key ^ prefix) & known) == 0 ? 1 : 0);
  });
}

IP_DEVICE std::int32_t inclusive_scan(std::int32_t value) {
  const int lane = ip::lane_index();
  for (int delta = 1; delta < 32; delta *= 2) {
    const std::int32_t below = ip::shuffle_up(ip::full_mask, value, delta);
    if (lane >= delta) value += below;
  }
  return value;
}

struct alignas(8) Pair {
  std::int32_t first, second;
};

// The largest digit that `need` keys reach from above, and how many of them are its own. Thread i
// adds up the columns of bin 255 - i; a block-wide scan finds where the sum passes `need`.
IP_DEVICE Pair find_digit(const std::int32_t* counts, std::int32_t need, std::int32_t* warp_counts,
                          Pair* found) {
  const int lane = ip::lane_index(), bin = topk_bins - 1 - ip::thread_index();
  std::int32_t own = 0;
  for (int j = 0; j < 32; ++j)  // from another bank in each lane
    own += ip::load_shared(counts + bin * 32 + ((j + lane) & 31));
  const std::int32_t in_warp = inclusive_scan(own);
  if (lane == 31) ip::store_shared(warp_counts + ip::warp_index(), in_warp);
  ip::sync_block();
  std::int32_t above = in_warp - own;
  for (int warp = 0; warp < topk_warps; ++warp) {
    const std::int32_t total = ip::load_shared(warp_counts + warp);
    if (warp < ip::warp_index()) above += total;
  }
  if (above < need && need <= above + own) ip::store_shared(found, Pair{bin, need - above});
  ip::sync_block();
  return ip::load_shared(found);
}

// Keys above `key` are selected, and of those equal to it the first `equal` in the order of pools.
struct Threshold {
  std::uint32_t key;
  std::int32_t equal;
};

template <bool Vector>
IP_DEVICE Threshold find_threshold(const Segment& segment, std::int32_t topk_pools,
                                   std::int32_t* counts, std::int32_t* warp_counts, Pair* found) {
  Threshold threshold{0, topk_pools};
  for (int digit = 0; digit < topk_digits; ++digit) {
    const int shift = 24 - 8 * digit;
    clear_counts(counts);
    ip::sync_block();
    count_digits<Vector>(segment, threshold.key, shift, counts);
    ip::sync_block();
    const Pair at = find_digit(counts, threshold.equal, warp_counts, found);
    threshold.key |= static_cast<std::uint32_t>(at.first) << shift;
    threshold.equal = at.second;
  }
  if (threshold.key == nan_key) threshold.equal = 0;  // fewer numbers than places
  return threshold;
}

IP_DEVICE std::int32_t warp_sum(std::int32_t value) {
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2)
    value += ip::shuffle_xor(ip::full_mask, value, lane_mask);
  return value;
}

// Where the selected pools of each warp's segment end in the order of the row, and how many keys
// equal to the threshold the calling thread's warp selects.
struct Shares {
  std::int32_t end[topk_warps];
  std::int32_t first, equal;
};
template <bool Vector>
IP_DEVICE Shares share_places(const Segment& segment, const Threshold& threshold,
                              Pair* warp_pairs) {
  std::int32_t above = 0, equal = 0;
  for_each_key<Vector>(segment, [&](std::uint32_t key) {
    above += key > threshold.key ? 1 : 0;
    equal += key == threshold.key ? 1 : 0;
  });
  above = warp_sum(above);
  equal = warp_sum(equal);
  if (ip::lane_index() == 0) ip::store_shared(warp_pairs + ip::warp_index(), Pair{above, equal});
  ip::sync_block();
  Shares shares{};
  std::int32_t places = 0, left = threshold.equal;
  IP_UNROLL for (int warp = 0; warp < topk_warps; ++warp) {
    const Pair counted = ip::load_shared(warp_pairs + warp);
    const std::int32_t taken = counted.second < left ? counted.second : left;
    if (warp == ip::warp_index()) {
      shares.first = places;
      shares.equal = taken;
    }
    left -= taken;
    places += counted.first + taken;
    shares.end[warp] = places;
  }
  return shares;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
