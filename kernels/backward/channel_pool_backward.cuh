// channel_pool_backward: from the gradient g of each pooled vector to those of its vectors and
// weights, where each channel has weights of its own (kpool, csa).
//
//   grad_vectors[g, i, c] = g_c w_ic, grad_weights[g, i, c] = g_c V_ic, 0 where i is absent
//
// With norm_weight n, g first goes back through rotation and norm, r^2 = mean_c y_c^2 + eps of the
// sums y = sum_i w_i V_i, which are made again:
//   (a, b) -> (a cos + b sin, b cos - a sin) of neighbouring pairs of the last rope_dims channels
//   grad_norm[g, c] = g_c y_c / r
//   g_c <- (n_c g_c - (y_c / r) sum_k (n_k g_k y_k / r) / D) / r
//
// `clip`: weight gradients into [-1, 1]. Vectors [R, D] in the storage dtype; pool_weights,
// grad_vectors, grad_weights [G, m, D], grad_pooled, grad_norm [G, D] f32. Lanes hold groups as in
// weighted_pool.cuh. Bytes per group: m D elements and 4 m D of weights (twice with a norm), 4 D
// and a record of 16 in, 8 m D out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/slots.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct ChannelPoolBackwardParams {
  GroupParams grouped;
  const float* pool_weights;
  bool clip;
  const float* norm_weight;
  float norm_eps;
  const float* rope;
  std::int32_t rope_dims;
  const float* grad_pooled;
  float* grad_vectors;
  float* grad_weights;
  float* grad_norm;
};

// Piece `piece` of the j-th present vector and of its weights, as f32.
template <DType T>
struct WeightedPiece {
  Piece<T> vector = {};
  Piece<DType::f32> weight = {};

  IP_DEVICE void load(const ChannelPoolBackwardParams& p, const GroupPlace& place,
                      const GroupVectors& vectors, int j, int piece) {
    const int i = vectors.place(j),
              channel = piece * piece_channels + place.lane * channels_per_lane;
    const std::int64_t row = vectors.record.first_row + p.grouped.offsets[i];
    vector = load_piece<T>(p.grouped.vectors + (row * p.grouped.head_dim + channel) * bytes_of(T));
    const float* const weights = p.pool_weights + slot_of(p.grouped, place.group, i) + channel;
    weight = load_piece<DType::f32>(reinterpret_cast<const std::byte*>(weights));
  }
};

// f(j, piece, v, w) of every slot of the group and piece, zeros for absent ones.
template <DType T, int Pieces, class F>
IP_DEVICE void for_each_piece(const ChannelPoolBackwardParams& p, const GroupPlace& place,
                              const GroupVectors& vectors, F&& f) {
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    for (int first = 0; first < p.grouped.index_kpool; first += slots_in_flight) {
      WeightedPiece<T> loaded[slots_in_flight];
      IP_UNROLL
      for (int k = 0; k < slots_in_flight; ++k)
        if (first + k < vectors.present()) loaded[k].load(p, place, vectors, first + k, piece);
      IP_UNROLL
      for (int k = 0; k < slots_in_flight; ++k) {
        if (first + k >= p.grouped.index_kpool) break;
        float v[channels_per_lane], w[channels_per_lane];
        unpack<T>(loaded[k].vector, v);
        unpack<DType::f32>(loaded[k].weight, w);
        f(first + k, piece, v, w);
      }
    }
  }
}

// Pairs back by their angles.
template <int Pieces>
IP_DEVICE void rotate_pairs_back(const ChannelPoolBackwardParams& p, const GroupPlace& place,
                                 LaneChannels<Pieces>& grad) {
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
      const float a = grad.of[piece][i], b = grad.of[piece][i + 1], cos = rope[i],
                  sin = rope[i + 1];
      grad.of[piece][i] = ip::fma(a, cos, ip::mul(b, sin));
      grad.of[piece][i + 1] = ip::fma(b, cos, -ip::mul(a, sin));
    }
  }
}

// `sums` become y / r, `grad` the gradient of the sums. All lanes of the warp take part.
template <int Pieces>
IP_DEVICE void norm_backward(const ChannelPoolBackwardParams& p, const GroupPlace& place,
                             LaneChannels<Pieces>& sums, LaneChannels<Pieces>& grad) {
  const auto dim = static_cast<float>(p.grouped.head_dim);
  float squares = 0, along = 0;
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece)
    for (float y : sums.of[piece]) squares = ip::fma(y, y, squares);
  const float mean_square = ip::div(sum_over(p.grouped.lanes, squares), dim);
  const float root = ip::sqrt(ip::add(mean_square, p.norm_eps));
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    const int channel = piece * piece_channels + place.lane * channels_per_lane;
    float n[channels_per_lane], to_norm[channels_per_lane];
    unpack<DType::f32>(
        load_piece<DType::f32>(reinterpret_cast<const std::byte*>(p.norm_weight + channel)), n);
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) {
      float &y = sums.of[piece][i], &g = grad.of[piece][i];
      y = ip::div(y, root);
      to_norm[i] = ip::mul(g, y);
      g = ip::mul(n[i], g);
      along = ip::fma(g, y, along);
    }
    if (place.active)
      store_lane_piece(p.grad_norm + place.group * p.grouped.head_dim, piece, place.lane, to_norm);
  }
  const float mean = ip::div(sum_over(p.grouped.lanes, along), dim);
  IP_UNROLL
  for (int piece = 0; piece < Pieces; ++piece) {
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) {
      float& g = grad.of[piece][i];
      g = ip::div(ip::fma(-sums.of[piece][i], mean, g), root);
    }
  }
}

template <DType T, int Pieces>
IP_KERNEL(policy_threads, pool_backward_blocks_per_sm(Pieces))
void channel_pool_backward_kernel(ChannelPoolBackwardParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  LaneChannels<Pieces> sums, grad;
  if (p.norm_weight != nullptr) {
    for_each_piece<T, Pieces>(p, place, vectors, [&](int, int piece, const auto& v, const auto& w) {
      IP_UNROLL
      for (int i = 0; i < channels_per_lane; ++i)
        sums.of[piece][i] = ip::fma(w[i], v[i], sums.of[piece][i]);
    });
  }
  if (place.active)
    grad = load_channels<Pieces>(p.grad_pooled + place.group * p.grouped.head_dim, place.lane);
  if (p.norm_weight != nullptr) {
    rotate_pairs_back<Pieces>(p, place, grad);
    norm_backward<Pieces>(p, place, sums, grad);
  }
  if (!place.active) return;
  for_each_piece<T, Pieces>(p, place, vectors, [&](int j, int piece, const auto& v, const auto& w) {
    float to_vector[channels_per_lane], to_weight[channels_per_lane];
    IP_UNROLL
    for (int i = 0; i < channels_per_lane; ++i) {
      const float g = j < vectors.present() ? grad.of[piece][i] : 0.0f;
      to_vector[i] = ip::mul(g, w[i]);
      to_weight[i] = ip::mul(g, v[i]);
      if (p.clip) to_weight[i] = clipped_to_unit(to_weight[i]);
    }
    const std::int64_t slot = slot_of(p.grouped, place.group, vectors.place(j));
    store_lane_piece(p.grad_vectors + slot, piece, place.lane, to_vector);
    store_lane_piece(p.grad_weights + slot, piece, place.lane, to_weight);
  });
}

inline std::optional<std::string> channel_pool_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<ChannelPoolBackwardArgs>(any);
  if (args == nullptr) return "it takes gradients of pooled vectors back to weights of channels";
  return bad_channel_pool_backward(*args);
}

inline void channel_pool_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<ChannelPoolBackwardArgs>(any);
  const ChannelPoolBackwardParams params = {group_params(args.grouped),
                                            args.pool_weights,
                                            args.clip,
                                            args.norm_weight,
                                            args.norm_eps,
                                            args.rope,
                                            args.rope_dims,
                                            args.grad_pooled,
                                            args.grad_vectors,
                                            args.grad_weights,
                                            args.grad_norm};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              channel_pool_backward_kernel<T, Pieces>, params);
  });
}

inline Work channel_pool_backward_work(const OpArgs& any) {
  return declared_channel_pool_backward(the_backward_args<ChannelPoolBackwardArgs>(any));
}

extern const Kernel channel_pool_backward;
const Kernel channel_pool_backward = {"channel_pool_backward", INDEXPOOL_TARGET_NAME,
                                      channel_pool_backward_unsupported,
                                      channel_pool_backward_launch, channel_pool_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
