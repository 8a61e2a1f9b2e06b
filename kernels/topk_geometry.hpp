// How topk shares out a row and shared memory, for the kernel and for what it declares.
#pragma once

#include <algorithm>
#include <cstdint>

namespace indexpool::kernels {

inline constexpr int topk_threads = 256;
inline constexpr int topk_warps = topk_threads / 32;
inline constexpr int topk_blocks_per_sm = 4;  // what the launch bounds promise
inline constexpr int topk_digits = 4;         // of 8 bits, from the top
inline constexpr int topk_bins = 256;
inline constexpr int topk_vectors = 8;   // 16-byte loads a thread keeps in flight
inline constexpr int topk_singles = 16;  // 4-byte loads where order matters

// Warps take whole groups: what their lanes load with one 16-byte instruction.
inline constexpr int topk_pool_group = 32 * 4;

// Byte offsets in shared memory. The counts of the digits and, after them, the lists of selected
// pools share its beginning.
struct TopkShared {
  int list_row;     // ints from one warp's list to the next, a multiple of 32
  int warp_counts;  // [topk_warps] int, then [topk_warps] pairs of ints
  int threshold;    // a pair of ints
  int bytes;
};
constexpr std::int64_t topk_list_row(std::int64_t topk_pools) {
  return (topk_pools + 32 + 31) / 32 * 32;  // 32 more for the unselected behind the last
}
constexpr std::int64_t topk_shared_bytes(std::int64_t topk_pools) {
  const std::int64_t counts = std::int64_t{topk_bins} * 32 * 4;
  const std::int64_t lists = topk_warps * topk_list_row(topk_pools) * 4;
  return std::max(counts, lists) + std::int64_t{topk_warps} * (4 + 8) + 16;
}
constexpr TopkShared topk_shared(std::int64_t topk_pools) {
  TopkShared at{};
  at.list_row = static_cast<int>(topk_list_row(topk_pools));
  at.bytes = static_cast<int>(topk_shared_bytes(topk_pools));
  at.threshold = at.bytes - 16;
  at.warp_counts = at.threshold - topk_warps * 12;
  return at;
}

}  // namespace indexpool::kernels
