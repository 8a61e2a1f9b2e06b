// Addresses in the paged cache and in the tail ring. 64-bit throughout: a page's byte offset passes
// 2^31 at 65 M pooled tokens, a row's at 8 M tokens.
#pragma once

#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// a / b for 0 <= a, 0 < b; the narrow division is some four times cheaper and nearly always enough.
IP_DEVICE std::int64_t quotient(std::int64_t a, std::int32_t b) {
  if (a >> 32 == 0)
    return static_cast<std::int64_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
  return a / b;
}

// Where state `slot` keeps its codes and its scale.
struct StateAddress {
  std::byte* codes;
  float* scale;
};
template <int D, DType Cache>
IP_DEVICE StateAddress state_address(const PagedCache& cache, std::int64_t slot) {
  constexpr std::int64_t code_bytes = static_cast<std::int64_t>(D) * bytes_of(Cache);
  const std::int64_t page = quotient(slot, cache.states_per_page);
  const std::int64_t state = slot - page * cache.states_per_page;
  std::byte* const base = cache.pages + page * cache.page_stride;
  std::byte* const scales = base + cache.states_per_page * code_bytes;
  return {base + state * code_bytes, reinterpret_cast<float*>(scales) + state};
}

enum class RingHalf { keys = 0, gate_scores = 1 };

// One request's ring, from the entry of `first_position` on.
template <int D, DType Storage>
struct Ring {
  std::byte* block;
  std::int32_t ring;
  std::int32_t first;

  // The entry of first_position + offset, offset < ring.
  IP_DEVICE std::byte* entry(RingHalf half, int offset) const {
    std::int32_t index = first + offset;
    index = index >= ring ? index - ring : index;
    return block + (static_cast<std::int64_t>(half) * ring + index) * (D * bytes_of(Storage));
  }
};

template <int D, DType Storage>
IP_DEVICE Ring<D, Storage> ring_at(const TailRing& tail, std::int32_t tail_block,
                                   std::int64_t first_position) {
  const std::int64_t first = first_position - quotient(first_position, tail.ring) * tail.ring;
  return {tail.base + tail_block * tail.block_stride, tail.ring, static_cast<std::int32_t>(first)};
}

template <int D, DType Storage>
IP_DEVICE const std::byte* row_at(const void* rows, std::int64_t row) {
  return static_cast<const std::byte*>(rows) + row * (D * bytes_of(Storage));
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
