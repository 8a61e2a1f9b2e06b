// Who runs when and where in a serving engine: admission of requests, layers that share a
// selection, the width of the index table, launch grids.
#pragma once

#include <cstdint>
#include <vector>

namespace indexpool::serving {

// How a cache grows with its request.
enum class CacheKind {
  by_token,   // latents, pooled keys: one more block each block_tokens tokens
  by_request  // tail rings, recurrent states: one block, whatever the length
};
// Blocks of a cache that a request of `tokens` tokens ever holds. index_kpool is the block size of
// no cache (vllm-project/vllm-ascend#15984).
std::int64_t blocks_needed(CacheKind kind, std::int64_t tokens, std::int64_t block_tokens);

// By layer: the layer whose selection it attends to, itself where it has an indexer. Layer i has
// one iff max(i - offset + 1, 0) % frequency == 0 (IndexShare of GLM-5.2: frequency 4, offset 3).
std::vector<std::int64_t> selection_sources(std::int64_t layers, std::int64_t frequency,
                                            std::int64_t offset);

// Columns that a sparse attention kernel needs for a row of the selection: index_topk and the
// forced tail, up to a multiple of `alignment` (vLLM: 128, so 2176 for 2051).
std::int64_t index_table_columns(std::int64_t selection_width, std::int64_t alignment);

// A CUDA launch grid and its limits (CUDA C++ Programming Guide, compute capabilities).
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
  std::int64_t rows_per_block = 1;  // that a block loops over
  bool operator==(const Grid&) const = default;
};
inline constexpr Grid largest_grid{(std::int64_t{1} << 31) - 1, 65535, 65535, 0};
// One block of x a column tile, rows along y: as many blocks as the grid allows, each looping over
// the rest.
Grid grid_of_rows(std::int64_t rows, std::int64_t column_tiles);

}  // namespace indexpool::serving
