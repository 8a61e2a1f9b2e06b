// pool_backward: from the gradient g of each pooled vector to those of its vectors and weights,
// where a vector has one weight. Starts from the stored weights.
//
//   u_i = w_i / s, s = sum_i w_i when `divide` (in order), else 1; u_i = 1 / (number present) where
//   |s| < 2^-126, the mean was pooled
//   grad_vectors[g, i, c] = g_c u_i
//   grad_weights[g, i] = a_i, a_i = sum_c g_c V_ic; (a_i - sum_j u_j a_j) / s when `divide`, which
//   is g . (V_i - pooled) / s without reading the vectors twice; 0 where the mean was pooled
//
// Absent vectors get 0. `clip`: weight gradients into [-1, 1]. Vectors [R, D] in the storage dtype,
// pool_weights [sets, m], grad_pooled [G, D], grad_vectors [G, m, D], grad_weights [G, m] f32.
// Lanes hold groups as in weighted_pool.cuh; a_i by the tree over them, then a lane stores one
// weight's gradient. Bytes per group: m D elements, 4 D, a record of 16 and 4 m (twice when
// `divide`) in, 4 m D + 4 m out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/slots.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct PoolBackwardParams {
  GroupParams grouped;
  const float* pool_weights;
  bool divide, clip;
  const float* grad_pooled;
  float* grad_vectors;
  float* grad_weights;
};

// The group's row of weights, and by what they were divided.
struct DividedWeights {
  const float* row;
  float divisor = 1;
  bool mean = false;

  IP_DEVICE float share(int i) const {
    const float weight = ip::load_global(row + i);
    return ip::div(mean ? 1.0f : weight, divisor);
  }
};
IP_DEVICE DividedWeights divided_weights(const PoolBackwardParams& p, const GroupVectors& vectors) {
  constexpr float smallest_normal = 0x1p-126f;
  DividedWeights weights = {p.pool_weights +
                            std::int64_t{vectors.record.weight_set} * p.grouped.index_kpool};
  if (!p.divide || vectors.present() <= 0) return weights;
  float sum = 0;
  for (int j = 0; j < vectors.present(); ++j)
    sum = ip::add(sum, ip::load_global(weights.row + vectors.place(j)));
  weights.mean = sum < smallest_normal && sum > -smallest_normal;
  weights.divisor = weights.mean ? static_cast<float>(vectors.present()) : sum;
  return weights;
}

// a_j of the group's vectors, one for each lane and round, and sum_j u_j a_j in every lane.
struct WeightDots {
  static constexpr int rounds = most_pooled_vectors / (smallest_policy_dim / channels_per_lane);
  float mine[rounds] = {};
  float pooled = 0;

  IP_DEVICE void keep(const GroupParams& p, int lane, int j, float share, float dot) {
    pooled = ip::fma(share, dot, pooled);
    IP_UNROLL
    for (int round = 0; round < rounds; ++round)
      if (j == round * p.lanes + lane) mine[round] = dot;
  }
};

IP_DEVICE void store_weight_gradients(const PoolBackwardParams& p, const GroupPlace& place,
                                      const GroupVectors& vectors, const DividedWeights& weights,
                                      const WeightDots& dots) {
  IP_UNROLL
  for (int round = 0; round < WeightDots::rounds; ++round) {
    const int j = round * p.grouped.lanes + place.lane;
    if (!place.active || j >= p.grouped.index_kpool) continue;
    float gradient = dots.mine[round];
    if (p.divide) gradient = ip::div(ip::sub(gradient, dots.pooled), weights.divisor);
    if (j >= vectors.present() || weights.mean) gradient = 0;
    if (p.clip) gradient = clipped_to_unit(gradient);
    ip::store_global(p.grad_weights + place.group * p.grouped.index_kpool + vectors.place(j),
                     gradient);
  }
}

template <DType T, int Pieces>
IP_DEVICE float share_gradient(const LaneChannels<Pieces>& grad, const Row<T, Pieces>& row,
                               float share, int lane, float* slot) {
  float dot = 0;
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p) {
    float v[channels_per_lane], to_vector[channels_per_lane];
    unpack<T>(row.piece[p], v);
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) {
      to_vector[i] = ip::mul(grad.of[p][i], share);
      dot = ip::fma(grad.of[p][i], v[i], dot);
    }
    if (slot != nullptr) store_lane_piece(slot, p, lane, to_vector);
  }
  return dot;
}

template <DType T, int Pieces>
IP_KERNEL(policy_threads, pool_backward_blocks_per_sm(Pieces))
void pool_backward_kernel(PoolBackwardParams p) {
  constexpr int batch = Row<T, Pieces>::in_flight;
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const DividedWeights weights = divided_weights(p, vectors);
  LaneChannels<Pieces> grad;
  if (place.active)
    grad = load_channels<Pieces>(p.grad_pooled + place.group * p.grouped.head_dim, place.lane);
  WeightDots dots;
  for (int first = 0; first < p.grouped.index_kpool; first += batch) {
    Row<T, Pieces> rows[batch];
    float share[batch];
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      rows[k] = {}, share[k] = 0;
      if (first + k >= vectors.present()) continue;
      rows[k] = load_vector<T, Pieces>(p.grouped, vectors, first + k, place.lane);
      share[k] = weights.share(vectors.place(first + k));
    }
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      const int j = first + k;
      if (j >= p.grouped.index_kpool) break;  // of all lanes
      float* const slot = place.active
                              ? p.grad_vectors + slot_of(p.grouped, place.group, vectors.place(j))
                              : nullptr;
      const float mine = share_gradient<T, Pieces>(grad, rows[k], share[k], place.lane, slot);
      dots.keep(p.grouped, place.lane, j, share[k], sum_over(p.grouped.lanes, mine));
    }
  }
  store_weight_gradients(p, place, vectors, weights, dots);
}

inline std::optional<std::string> pool_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<PoolBackwardArgs>(any);
  if (args == nullptr) return "it takes gradients of pooled vectors back to one weight per vector";
  return bad_pool_backward(*args);
}

inline void pool_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<PoolBackwardArgs>(any);
  const PoolBackwardParams params = {
      group_params(args.grouped), args.pool_weights, args.divide,      args.clip,
      args.grad_pooled,           args.grad_vectors, args.grad_weights};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              pool_backward_kernel<T, Pieces>, params);
  });
}

inline Work pool_backward_work(const OpArgs& any) {
  return declared_pool_backward(the_backward_args<PoolBackwardArgs>(any));
}

extern const Kernel pool_backward;
const Kernel pool_backward = {"pool_backward", INDEXPOOL_TARGET_NAME, pool_backward_unsupported,
                              pool_backward_launch, pool_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
