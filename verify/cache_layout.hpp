// Where the paged cache and the tail rings lie, worked out independently of the kernels' planning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/model/case.hpp"

namespace indexpool::verify {

// Fills everything that nothing has written yet: NaN in bf16, f16, f32 and e4m3, -1 in i8.
inline constexpr std::byte poison{0xff};

struct CacheLayout {
  DType cache = DType::e4m3;
  bool scales = true;
  std::int64_t head_dim = 0, states_per_page = 0;
  std::int64_t page_stride = 0, pages = 0;  // bytes; pages of all requests and a few of nobody's
  std::int64_t table_width = 0;
  std::vector<std::int32_t> block_table;  // [requests, table_width]; entries past the end are wild

  DType storage = DType::bf16;
  std::int64_t ring = 0;               // entries
  std::int64_t tail_block_stride = 0;  // bytes
  std::int64_t tail_blocks = 0;
  std::vector<std::int32_t> tail_block;  // by request

  std::int64_t cache_bytes() const { return pages * page_stride; }
  std::int64_t tail_bytes() const { return tail_blocks * tail_block_stride; }
  std::int64_t code_bytes() const { return head_dim * info(cache).bytes; }
  std::int64_t tail_row_bytes() const { return head_dim * info(storage).bytes; }
  std::span<const std::int32_t> table(std::int64_t request) const;
  // Byte offsets in the cache of a pool's codes and of its scale, by request and pool.
  std::int64_t code_offset(std::int64_t request, std::int64_t pool) const;
  std::int64_t scale_offset(std::int64_t request, std::int64_t pool) const;
  // Byte offset in the tails of position `position`; half 0 keys, 1 gate scores.
  std::int64_t tail_offset(std::int64_t request, std::int64_t half, std::int64_t position) const;
};

// `positions[s]` token positions of sequence s must have room. Pages and tail blocks are dealt in a
// seeded shuffled order; strides exceed what they hold for two of three seeds.
CacheLayout lay_out_cache(const IndexerInputs& inputs, std::span<const std::int64_t> positions,
                          std::int64_t states_per_page, std::int64_t ring, std::uint64_t seed);

}  // namespace indexpool::verify
