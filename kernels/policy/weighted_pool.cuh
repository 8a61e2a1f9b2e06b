// weighted_pool: the pooled vector of each group from its pool weights, for every policy.
//
//   y = sum_i w_i V_i                  over the present i in order, by fused multiply-adds from 0
//   y = y / s, s = sum_i w_i           when `divide`, s added up in order; where |s| < 2^-126 the
//                                      mean of the present vectors instead, and a mark
//   y = (y norm_weight) / sqrt(sum_c y_c^2 / D + eps)               when norm_weight is given, and
//   (a, b) -> (a cos - b sin, a sin + b cos)   of neighbouring pairs of the last rope_dims channels
//
// then rounded to mode.pooled, and stored as mode.cache or quantised from there (store_pooled.cuh);
// the checksums' pair over values is of y as it is before that rounding.
//
// Vectors [R, D] in the storage dtype; pool_weights [sets, m], the row group.weight_set, or
// [G, m, D] f32; pooled [G, D]. min(32, D / 8) lanes hold a group (geometry.hpp), 64 bytes of
// 16-bit vectors in flight each; warps know nothing of each other. Bytes per group: m D elements, a
// record of 16 and 4 m (twice when `divide`: s is known before the first vector is used) or 4 m D
// of weights in, D codes and a scale or D elements out.
#pragma once

#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/store_pooled.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct WeightedPoolParams {
  GroupParams grouped;
  PooledFormat format;
  const float* pool_weights;
  bool per_channel, divide;
  const float* norm_weight;
  float norm_eps;
  const float* rope;
  std::int32_t rope_dims;
  std::int32_t* fallbacks;
};

// One weight per vector: where its row starts, and what the sum is divided by.
struct VectorWeights {
  const float* row;
  float divisor = 1;
  bool fallback = false;
};
IP_DEVICE VectorWeights vector_weights(const WeightedPoolParams& p, const GroupVectors& vectors) {
  constexpr float smallest_normal = 0x1p-126f;
  VectorWeights weights = {p.pool_weights +
                           std::int64_t{vectors.record.weight_set} * p.grouped.index_kpool};
  if (!p.divide || vectors.present() <= 0) return weights;
  float sum = 0;
  for (int j = 0; j < vectors.present(); ++j)
    sum = ip::add(sum, ip::load_global(weights.row + vectors.place(j)));
  weights.fallback = sum < smallest_normal && sum > -smallest_normal;
  weights.divisor = weights.fallback ? static_cast<float>(vectors.present()) : sum;
  return weights;
}

template <DType T>
IP_DEVICE void add_weighted(float weight, const Piece<T>& piece, float (&y)[channels_per_lane]) {
  float v[channels_per_lane];
  unpack<T>(piece, v);
  IP_UNROLL
  for (int i = 0; i < channels_per_lane; ++i) y[i] = ip::fma(weight, v[i], y[i]);
}
template <DType T>
IP_DEVICE void add_weighted(const Piece<DType::f32>& weights, const Piece<T>& piece,
                            float (&y)[channels_per_lane]) {
  float v[channels_per_lane], w[channels_per_lane];
  unpack<T>(piece, v);
  unpack<DType::f32>(weights, w);
  IP_UNROLL
  for (int i = 0; i < channels_per_lane; ++i) y[i] = ip::fma(w[i], v[i], y[i]);
}

// The vectors of a group whose loads are in flight together, and their weights.
template <DType T, int Pieces>
struct WeightedRows {
  static constexpr int batch = Row<T, Pieces>::in_flight;
  Row<T, Pieces> row[batch];
  Row<DType::f32, Pieces> channel_weights[batch];
  float weight[batch];

  IP_DEVICE void load(const WeightedPoolParams& p, const GroupPlace& place,
                      const GroupVectors& vectors, const float* weights, int first) {
    const std::int64_t group_row = place.group * p.grouped.index_kpool;
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      row[k] = {}, channel_weights[k] = {}, weight[k] = 0;
      if (first + k >= vectors.present()) continue;
      const int i = vectors.place(first + k);
      row[k] = load_vector<T, Pieces>(p.grouped, vectors, first + k, place.lane);
      if (!p.per_channel) {
        weight[k] = ip::load_global(weights + i);
      } else {
        const float* const at = p.pool_weights + (group_row + i) * p.grouped.head_dim;
        channel_weights[k] =
            load_row<DType::f32, Pieces>(reinterpret_cast<const std::byte*>(at), place.lane);
      }
    }
  }
};

// The weighted sum of the present vectors.
template <DType T, int Pieces>
IP_DEVICE void add_vectors(const WeightedPoolParams& p, const GroupPlace& place,
                           const GroupVectors& vectors, const VectorWeights& weights,
                           Pooled<Pieces>& y) {
  constexpr int batch = WeightedRows<T, Pieces>::batch;
  for (int first = 0; first < vectors.present(); first += batch) {
    WeightedRows<T, Pieces> rows;
    rows.load(p, place, vectors, weights.row, first);
    IP_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (first + k >= vectors.present()) continue;
      const float weight = weights.fallback ? 1.0f : rows.weight[k];
      IP_UNROLL
      for (int piece = 0; piece < Pieces; ++piece) {
        if (p.per_channel)
          add_weighted<T>(rows.channel_weights[k].piece[piece], rows.row[k].piece[piece], y[piece]);
        else
          add_weighted<T>(weight, rows.row[k].piece[piece], y[piece]);
      }
    }
  }
}

// RMSNorm. All lanes of the warp take part.
template <int Pieces>
IP_DEVICE void normalise(const WeightedPoolParams& p, const GroupPlace& place, Pooled<Pieces>& y) {
  float squares = 0;
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i)
      squares = ip::fma(y[piece][i], y[piece][i], squares);
  }
  const float sum = sum_over(p.grouped.lanes, squares);
  const float mean = ip::div(sum, static_cast<float>(p.grouped.head_dim));
  const float root = ip::sqrt(ip::add(mean, p.norm_eps));
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int channel = piece * piece_channels + place.lane * channels_per_lane;
    float weight[channels_per_lane];
    unpack<DType::f32>(
        load_piece<DType::f32>(reinterpret_cast<const std::byte*>(p.norm_weight + channel)),
        weight);
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i)
      y[piece][i] = ip::div(ip::mul(y[piece][i], weight[i]), root);
  }
}

template <int Pieces>
IP_DEVICE void rotate_pairs(const WeightedPoolParams& p, const GroupPlace& place,
                            Pooled<Pieces>& y) {
  const int first_rotated = p.grouped.head_dim - p.rope_dims;
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int channel = piece * piece_channels + place.lane * channels_per_lane;
    if (channel < first_rotated || !place.active) continue;
    const float* const at = p.rope + place.group * p.rope_dims + (channel - first_rotated);
    float rope[channels_per_lane];
    unpack<DType::f32>(load_piece<DType::f32>(reinterpret_cast<const std::byte*>(at)), rope);
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; i += 2) {
      const float a = y[piece][i], b = y[piece][i + 1], cos = rope[i], sin = rope[i + 1];
      y[piece][i] = ip::fma(a, cos, -ip::mul(b, sin));
      y[piece][i + 1] = ip::fma(a, sin, ip::mul(b, cos));
    }
  }
}

template <DType T, int Pieces>
IP_KERNEL(policy_threads, policy_pool_blocks_per_sm(Pieces))
void weighted_pool_kernel(WeightedPoolParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const VectorWeights weights = vector_weights(p, vectors);
  Pooled<Pieces> y = {};
  add_vectors<T, Pieces>(p, place, vectors, weights, y);
  if (p.divide) {
    IP_UNROLL
    for (int piece = 0; piece < Pieces; ++piece) {
      IP_UNROLL
      for (int i = 0; i < channels_per_lane; ++i)
        y[piece][i] = ip::div(y[piece][i], weights.divisor);
    }
  }
  if (p.norm_weight != nullptr) {
    normalise<Pieces>(p, place, y);
    rotate_pairs<Pieces>(p, place, y);
  }
  store_pooled<Pieces>(y, p.grouped, place, p.format);
  if (p.fallbacks != nullptr && place.active && place.lane == 0)
    ip::store_global(p.fallbacks + place.group, weights.fallback ? 1 : 0);
}

inline std::optional<std::string> weighted_pool_unsupported(const OpArgs& any) {
  const auto* args = policy_args<WeightedPoolArgs>(any);
  if (args == nullptr) return "it pools vectors with given weights";
  return bad_weighted_pool(*args);
}

inline void weighted_pool_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<WeightedPoolArgs>(any);
  const WeightedPoolParams params = {group_params(args.grouped),
                                     {args.mode.pooled, args.mode.cache, args.mode.scale,
                                      args.pooled, args.scales, args.checksums},
                                     args.pool_weights,
                                     args.per_channel,
                                     args.divide,
                                     args.norm_weight,
                                     args.norm_eps,
                                     args.rope,
                                     args.rope_dims,
                                     args.fallbacks};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              weighted_pool_kernel<T, Pieces>, params);
  });
}

inline Work weighted_pool_work(const OpArgs& any) {
  return declared_weighted_pool(the_policy_args<WeightedPoolArgs>(any));
}

extern const Kernel weighted_pool;
const Kernel weighted_pool = {"weighted_pool", INDEXPOOL_TARGET_NAME, weighted_pool_unsupported,
                              weighted_pool_launch, weighted_pool_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
