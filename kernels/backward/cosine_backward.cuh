// cosine_backward: back through the cosine of query and vector, from the gradients of the weights
// that were made of it.
//
//   b_i = cosine_share grad_weights_i, r_i = 1 / (|q| |V_i|), cos_i = (q . V_i) r_i
//   grad_vectors[g, i] = held_vectors[g, i] + b_i (r_i q - cos_i V_i / |V_i|^2), 0 of absent i
//   grad_queries[g] = sum_i b_i r_i V_i - (sum_i b_i cos_i) q / |q|^2
//   cosines[g, i] = cos_i, 0 of absent i
//
// In order: cosine as in dot.cuh, b_i / norms and (b_i cos_i) / |V_i|^2 once for all channels, then
// fused multiply-adds. Where a norm is zero cos_i and its gradient are 0.
//
// Vectors [R, D], queries [G, D] in the storage dtype, grad_weights, cosines [G, m], held_vectors,
// grad_vectors [G, m, D], grad_queries [G, D] f32. Lanes hold groups as in weighted_pool.cuh; a
// vector is read once and stays in registers between its dot products and its gradient. Bytes per
// group: (m + 1) D elements, 4 m D, a record of 16 and 4 m in, 4 (m + 1) D + 4 m out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/slots.cuh"
#include "indexpool/kernels/policy/dot.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct CosineBackwardParams {
  GroupParams grouped;
  const std::byte* queries;
  float cosine_share;
  const float* grad_weights;
  const float* held_vectors;
  float* grad_vectors;
  float* grad_queries;
  float* cosines;
};

// What one vector gives: its cosine, and the factors of the other vector and of itself.
struct CosineSlope {
  float cosine = 0, other = 0, own = 0;
};
IP_DEVICE CosineSlope cosine_slope(const Dots& dots, float query_square, float gradient) {
  const float norms = ip::mul(ip::sqrt(query_square), ip::sqrt(dots.square));
  CosineSlope slope;
  if (!(norms > 0)) return slope;
  slope.cosine = ip::div(dots.dot, norms);
  slope.other = ip::div(gradient, norms);
  slope.own = ip::div(ip::mul(gradient, slope.cosine), dots.square);
  return slope;
}

// Vector i of an active lane's group: its gradient, and its share of the query's.
template <DType T, int Pieces>
IP_DEVICE void slope_gradient(const CosineBackwardParams& p, std::int64_t slot, int lane,
                              bool present, const Row<T, Pieces>& query,
                              const Row<T, Pieces>& vector, const CosineSlope& slope,
                              LaneChannels<Pieces>& to_query) {
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    float q[channels_per_lane], v[channels_per_lane], to_vector[channels_per_lane] = {};
    const std::int64_t at = slot + piece * piece_channels + lane * channels_per_lane;
    if (present) {
      const auto* held = reinterpret_cast<const std::byte*>(p.held_vectors + at);
      unpack<DType::f32>(load_piece<DType::f32>(held), to_vector);
    }
    unpack<T>(query.piece[piece], q);
    unpack<T>(vector.piece[piece], v);
    IP_UNROLL
    for (int c = 0; c < channels_per_lane; ++c) {
      to_vector[c] = ip::fma(slope.other, q[c], ip::fma(-slope.own, v[c], to_vector[c]));
      to_query.of[piece][c] = ip::fma(slope.other, v[c], to_query.of[piece][c]);
    }
    store_lane_piece(p.grad_vectors + slot, piece, lane, to_vector);
  }
}

// Takes away `along` times the query's own channels and stores what is left.
template <DType T, int Pieces>
IP_DEVICE void store_query_gradient(float* row, int lane, const Row<T, Pieces>& query, float along,
                                    const LaneChannels<Pieces>& to_query) {
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    float q[channels_per_lane];
    unpack<T>(query.piece[piece], q);
    IP_UNROLL
    for (int c = 0; c < channels_per_lane; ++c) q[c] = ip::fma(-along, q[c], to_query.of[piece][c]);
    store_lane_piece(row, piece, lane, q);
  }
}

template <DType T, int Pieces>
IP_KERNEL(policy_threads, cosine_backward_blocks_per_sm(Pieces))
void cosine_backward_kernel(CosineBackwardParams p) {
  constexpr int batch = Row<T, Pieces>::in_flight;
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const auto query = load_query<T, Pieces>(p.queries, p.grouped, place);
  const float query_square = sum_over(p.grouped.lanes, lane_dot(query, query));
  const std::int64_t row = place.group * p.grouped.index_kpool;
  LaneChannels<Pieces> to_query;
  float along = 0, mine = 0;
  for (int first = 0; first < p.grouped.index_kpool; first += batch) {
    Row<T, Pieces> rows[batch];
    float gradient[batch];
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      rows[k] = {}, gradient[k] = 0;
      if (first + k >= vectors.present()) continue;
      rows[k] = load_vector<T, Pieces>(p.grouped, vectors, first + k, place.lane);
      const float of_weight = ip::load_global(p.grad_weights + row + vectors.place(first + k));
      gradient[k] = ip::mul(p.cosine_share, of_weight);
    }
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      const int j = first + k;
      if (j >= p.grouped.index_kpool) break;  // of all lanes
      const Dots dots = {sum_over(p.grouped.lanes, lane_dot(query, rows[k])),
                         sum_over(p.grouped.lanes, lane_dot(rows[k], rows[k]))};
      const CosineSlope slope = cosine_slope(dots, query_square, gradient[k]);
      along = ip::fma(gradient[k], slope.cosine, along);
      const int turn = j & (p.grouped.lanes - 1);
      if (place.lane == turn) mine = slope.cosine;
      if (!place.active) continue;
      slope_gradient<T, Pieces>(p, slot_of(p.grouped, place.group, vectors.place(j)), place.lane,
                                j < vectors.present(), query, rows[k], slope, to_query);
      // Each lane has one of a round's cosines: neighbours store neighbouring words.
      const bool round_ends = turn == p.grouped.lanes - 1 || j == p.grouped.index_kpool - 1;
      if (round_ends && place.lane <= turn)
        ip::store_global(p.cosines + row + vectors.place(j - turn + place.lane), mine);
    }
  }
  if (!place.active) return;
  store_query_gradient<T, Pieces>(p.grad_queries + place.group * p.grouped.head_dim, place.lane,
                                  query, query_square > 0 ? ip::div(along, query_square) : 0.0f,
                                  to_query);
}

inline std::optional<std::string> cosine_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<CosineBackwardArgs>(any);
  if (args == nullptr) return "it goes back through cosines";
  return bad_cosine_backward(*args);
}

inline void cosine_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<CosineBackwardArgs>(any);
  const CosineBackwardParams params = {
      group_params(args.grouped), static_cast<const std::byte*>(args.queries),
      args.cosine_share,          args.grad_weights,
      args.held_vectors,          args.grad_vectors,
      args.grad_queries,          args.cosines};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              cosine_backward_kernel<T, Pieces>, params);
  });
}

inline Work cosine_backward_work(const OpArgs& any) {
  return declared_cosine_backward(the_backward_args<CosineBackwardArgs>(any));
}

extern const Kernel cosine_backward;
const Kernel cosine_backward = {"cosine_backward", INDEXPOOL_TARGET_NAME,
                                cosine_backward_unsupported, cosine_backward_launch,
                                cosine_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
