// How the attention kernels deal their work to threads, and what lies in shared memory; shared by
// the kernels and by what they declare.
#pragma once

#include <cstdint>

#include "indexpool/kernels/attention_args.hpp"
#include "indexpool/kernels/geometry.hpp"

namespace indexpool::kernels {

// --- element-wise kernels: channels_per_lane or four channels a thread ---
inline constexpr int elementwise_threads = 256;
inline constexpr int elementwise_blocks_per_sm = 4;
inline constexpr int fusion_channels = 4;  // 16 bytes of f32

// --- linear attention: four lanes of a warp hold a column of the state in registers, a quarter of
// the key channels each; a warp holds eight neighbouring columns (lane % 8) ---
inline constexpr int column_parts = 4, columns_per_warp = 32 / column_parts;

// Token by token: a block for 32 columns of a head, so that few sequences fill a device. Query, key
// and decay of a token in f32, twice, so that one barrier a token does.
inline constexpr int step_columns = 32, step_threads = step_columns * column_parts;
inline constexpr int step_blocks_per_sm = 4;
constexpr std::int64_t step_shared_bytes(std::int64_t key_dim) { return key_dim * 2 * 3 * 4; }

// In chunks: a block for a head, as what its columns share costs most. Queries, keys, keys decayed
// to the chunk's end [chunk, K] each, accumulated decays [chunk + 1, K], the matrix A and the one
// that reads [chunk, chunk] each, all f32.
inline constexpr int chunk_threads_most = 128 * column_parts;
inline constexpr int chunk_blocks_per_sm = 1;
constexpr std::int64_t chunk_shared_bytes(std::int64_t key_dim) {
  constexpr std::int64_t chunk = linear_chunk_tokens;
  return 4 * ((4 * chunk + 1) * key_dim + 2 * chunk * chunk);
}

// --- sparse attention: a block per query row and head; a token's key (value) lies in D / 8
// neighbouring lanes ---
inline constexpr int sparse_threads = 128;
inline constexpr int sparse_warps = sparse_threads / 32;
inline constexpr int sparse_blocks_per_sm = 4;
// Tokens that a block looks at together.
constexpr std::int64_t sparse_groups(std::int64_t dim) {
  return sparse_threads / (dim / channels_per_lane);
}
constexpr std::int64_t padded_width(std::int64_t width) { return (width + 31) / 32 * 32; }
// Channel i of a thread's eight partial outputs lies at i * stride + thread: four words more than
// threads, so that neighbours of one channel and of the next share no bank.
inline constexpr int sparse_stride = sparse_threads + 4;
// Scores, then weights, of all selected tokens; maxima and sums of the warps; partial outputs.
constexpr std::int64_t sparse_shared_bytes(std::int64_t width) {
  return 4 * (padded_width(width) + std::int64_t{2} * sparse_warps +
              std::int64_t{channels_per_lane} * sparse_stride);
}
// Key loads in flight.
inline constexpr int sparse_batch = 4;

// --- composite attention: tiles of 64 rows times 32 others; eight neighbouring lanes share four
// rows (row, row + 16, ...) and take every eighth of the others ---
inline constexpr int tile_threads = 128, tile_rows = 64, tile_others = 32;
inline constexpr int lanes_per_row = 8, row_step = tile_threads / lanes_per_row;
inline constexpr int rows_per_thread = tile_rows / row_step;
inline constexpr int others_per_thread = tile_others / lanes_per_row;
inline constexpr int tile_blocks_per_sm = 2;
// Floats between one of the others and the next: eight lanes that read eight of them share no bank.
inline constexpr int tile_padding = 4;
// A row of weights: four of a warp lie in different banks.
inline constexpr int weight_stride = tile_others + 8;
// Composites and rows of a weight; queries, keys, values and weights.
constexpr std::int64_t decompress_shared_bytes(int dim) {
  return std::int64_t{4} * (tile_rows * dim + tile_others * (dim + tile_padding));
}
constexpr std::int64_t composite_shared_bytes(int dim) {
  return decompress_shared_bytes(dim) +
         std::int64_t{4} * (tile_others * dim + tile_rows * weight_stride);
}

// --- feedback: four slots a thread and step to count what is attended to; a thread a token ---
inline constexpr int feedback_threads = 256, feedback_warps = feedback_threads / 32;
inline constexpr int feedback_blocks_per_sm = 4;
inline constexpr int slots_per_thread = slots_per_count / feedback_threads;
inline constexpr std::int64_t feedback_shared_bytes = std::int64_t{feedback_warps} * 4;

}  // namespace indexpool::kernels
