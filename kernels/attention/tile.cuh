// A tile of products: 64 rows times 32 other rows of K channels, all in shared memory as f32.
//
// Eight neighbouring lanes share four rows (row, row + 16, ...) and take every eighth of the other
// rows, so that what a row's products are reduced to stays within eight lanes. The others lie four
// floats further apart than they are long: eight lanes then read eight of them without a conflict.
#pragma once

#include "indexpool/kernels/attention/geometry.hpp"
#include "indexpool/kernels/attention/rows.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// This thread's first row of a tile, and first other row.
IP_DEVICE int tile_row() { return ip::thread_index() / lanes_per_row; }
IP_DEVICE int tile_other() { return ip::thread_index() % lanes_per_row; }

// Rows [first, first + Rows) of K elements, `pitch` elements apart, to shared memory, `stride`
// floats apart; zeros for those from `end` on. Four elements a thread and step.
template <int K, DType T, int Rows>
IP_DEVICE void stage_tile(const std::byte* rows, std::int64_t pitch, std::int64_t first,
                          std::int64_t end, float* to, int stride) {
  constexpr int fours = K / 4;
  IP_UNROLL
  for (int i = 0; i < Rows * fours / tile_threads; ++i) {
    const int element = ip::thread_index() + i * tile_threads;
    const int row = element / fours, channel = 4 * (element % fours);
    Four four = {};
    if (first + row < end) four = load_elements<T>(rows, (first + row) * pitch + channel);
    store_four(to + row * stride + channel, four);
  }
}

// product[i][j] of row + 16 i and other + 8 j: fused multiply-adds over the channels in order.
template <int K>
IP_DEVICE void multiply_tile(const float* rows, const float* others,
                             float (&product)[rows_per_thread][others_per_thread]) {
  const float* const row = rows + tile_row() * K;
  const float* const other = others + tile_other() * (K + tile_padding);
  for (int c = 0; c < K; c += 4) {
    Four a[rows_per_thread], b[others_per_thread];
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) a[i] = load_four(row + i * row_step * K + c);
    IP_UNROLL
    for (int j = 0; j < others_per_thread; ++j)
      b[j] = load_four(other + j * lanes_per_row * (K + tile_padding) + c);
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) {
      IP_UNROLL
      for (int j = 0; j < others_per_thread; ++j) {
        IP_UNROLL
        for (int x = 0; x < 4; ++x) product[i][j] = ip::fma(a[i].x[x], b[j].x[x], product[i][j]);
      }
    }
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
