// Dot products of one vector (a query, a row of the gate) with the vectors of a group, and the
// cosine they give. A lane adds its channels in order by fused multiply-adds, pieces ascending;
// then the tree over the group's lanes.
#pragma once

#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <DType T, int Pieces>
IP_DEVICE float lane_dot(const Row<T, Pieces>& a, const Row<T, Pieces>& b) {
  float sum = 0;
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p) {
    float x[channels_per_lane], y[channels_per_lane];
    unpack<T>(a.piece[p], x);
    unpack<T>(b.piece[p], y);
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) sum = ip::fma(x[i], y[i], sum);
  }
  return sum;
}

// The query of this lane's group, of queries [G, D].
template <DType T, int Pieces>
IP_DEVICE Row<T, Pieces> load_query(const std::byte* queries, const GroupParams& p,
                                    const GroupPlace& place) {
  if (!place.active) return {};
  return load_row<T, Pieces>(queries + place.group * (p.head_dim * bytes_of(T)), place.lane);
}

// q . V and V . V of one vector of a group.
struct Dots {
  float dot = 0, square = 0;
};

// dot / (sqrt(q . q) sqrt(V . V)); 0 where a norm is zero (or its square underflows).
IP_DEVICE float cosine(const Dots& dots, float query_square) {
  const float norms = ip::mul(ip::sqrt(query_square), ip::sqrt(dots.square));
  return norms > 0 ? ip::div(dots.dot, norms) : 0.0f;
}

// Makes the row of pool weights of this lane's group: weight_of(i, dots) of every present vector i,
// 0 of the absent ones. In a round as many vectors as the group has lanes are multiplied, then each
// lane makes one weight, so that neighbours store neighbouring words. All lanes of a warp take
// part. Squares: also V . V.
template <bool Squares, DType T, int Pieces, class F>
IP_DEVICE void make_weights(const GroupParams& p, const GroupPlace& place,
                            const GroupVectors& vectors, const Row<T, Pieces>& query,
                            float* pool_weights, F&& weight_of) {
  constexpr int batch = Row<T, Pieces>::in_flight;
  for (int first = 0; first < p.index_kpool; first += p.lanes) {
    Dots mine;
    const int end = first + p.lanes < p.index_kpool ? first + p.lanes : p.index_kpool;
    for (int j = first; j < end; j += batch) {
      Row<T, Pieces> rows[batch];
      IP_UNROLL
      for (int k = 0; k < batch; ++k) {
        rows[k] = {};
        if (j + k < vectors.present())
          rows[k] = load_vector<T, Pieces>(p, vectors, j + k, place.lane);
      }
      IP_UNROLL
      for (int k = 0; k < batch; ++k) {
        if (j + k >= end) break;
        const float dot = sum_over(p.lanes, lane_dot(query, rows[k]));
        const float square = Squares ? sum_over(p.lanes, lane_dot(rows[k], rows[k])) : 0.0f;
        if (place.lane == j + k - first) mine = {dot, square};
      }
    }
    const int j = first + place.lane;
    if (!place.active || j >= p.index_kpool) continue;
    const int i = vectors.place(j);
    const float weight = j < vectors.present() ? weight_of(i, mine) : 0.0f;
    ip::store_global(pool_weights + place.group * p.index_kpool + i, weight);
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
