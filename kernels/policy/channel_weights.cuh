// channel_weights: pool weights of kpool and csa, per channel.
//
//   z_ic = gate_scores[row of V_i, c] + position_bias[i, c],  e_ic = exp(z_ic - max_i z_ic)
//   pool_weights[g, i, c] = e_ic / sum_i e_ic over the present i, 0 where i is absent
//
// Sums in order of the present vectors. gate_scores [R, D] in the storage dtype, position_bias
// [m, D], pool_weights [G, m, D] f32. Most of the bytes are weights, so a lane takes four channels:
// 16 bytes of each row of weights and biases, 8 or 16 of scores, everything read once; D / 4
// neighbouring lanes make a group, D / 128 warps of a long one. Bytes per group: m D elements and
// 4 m D of biases (from the cache) in, 4 m D out.
#pragma once

#include <bit>

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct ChannelWeightsParams {
  GroupParams grouped;  // `vectors` are the gate scores
  std::int32_t head_dim_log2;
  const float* position_bias;
  float* pool_weights;
};

struct alignas(8) Vec8 {
  std::uint32_t x, y;
};

template <DType T>
IP_DEVICE void load_quad(const std::byte* at, float (&values)[quad_channels]) {
  if constexpr (T == DType::f32) {
    const auto words = ip::load_global(reinterpret_cast<const ip::Vec16*>(at));
    values[0] = ip::float_of(words.x), values[1] = ip::float_of(words.y);
    values[2] = ip::float_of(words.z), values[3] = ip::float_of(words.w);
  } else {
    const auto words = ip::load_global(reinterpret_cast<const Vec8*>(at));
    values[0] = float_from_16<T>(static_cast<std::uint16_t>(words.x & 0xffff));
    values[1] = float_from_16<T>(static_cast<std::uint16_t>(words.x >> 16));
    values[2] = float_from_16<T>(static_cast<std::uint16_t>(words.y & 0xffff));
    values[3] = float_from_16<T>(static_cast<std::uint16_t>(words.y >> 16));
  }
}

// Four channels of up to `Capacity` vectors: scores, then exponentials.
template <int Capacity>
struct QuadSoftmax {
  float z[Capacity][quad_channels];
  float denominator[quad_channels];

  // Of the first `present` rows.
  IP_DEVICE void exponentials(int present) {
    IP_UNROLL
    for (int c = 0; c < quad_channels; ++c) {
      float largest = ip::float_of(0xff800000u);  // -infinity
      denominator[c] = 0;
      IP_UNROLL
      for (int j = 0; j < Capacity; ++j)
        if (j < present) largest = ip::max_number(largest, z[j][c]);
      IP_UNROLL
      for (int j = 0; j < Capacity; ++j) {
        if (j >= present) continue;
        z[j][c] = exp_f32(ip::sub(z[j][c], largest));
        denominator[c] = ip::add(denominator[c], z[j][c]);
      }
    }
  }
  IP_DEVICE ip::Vec16 weights(int j, bool is_present) const {
    std::uint32_t words[quad_channels];
    IP_UNROLL
    for (int c = 0; c < quad_channels; ++c)
      words[c] = is_present ? ip::bits_of(ip::div(z[j][c], denominator[c])) : 0u;
    return {words[0], words[1], words[2], words[3]};
  }
};

template <DType T, int Capacity>
IP_KERNEL(policy_threads, channel_blocks_per_sm(Capacity))
void channel_weights_kernel(ChannelWeightsParams p) {
  const std::int32_t head_dim = p.grouped.head_dim;
  const std::int64_t first =
      (ip::block_index() * policy_threads + ip::thread_index()) * quad_channels;
  const std::int64_t group = first >> p.head_dim_log2;
  if (group >= p.grouped.group_count) return;
  const int channel = static_cast<int>(first) & (head_dim - 1);
  const GroupVectors vectors = {load_record(p.grouped.groups + group), p.grouped.index_kpool};
  const int present = vectors.present();

  QuadSoftmax<Capacity> softmax;
  IP_UNROLL
  for (int j = 0; j < Capacity; ++j) {
    for (int c = 0; c < quad_channels; ++c) softmax.z[j][c] = 0;
    if (j >= present) continue;
    const int i = vectors.place(j);
    const std::int64_t row = vectors.record.first_row + p.grouped.offsets[i];
    float bias[quad_channels];
    load_quad<T>(p.grouped.vectors + (row * head_dim + channel) * bytes_of(T), softmax.z[j]);
    const std::int64_t bias_at = std::int64_t{i} * head_dim + channel;
    load_quad<DType::f32>(reinterpret_cast<const std::byte*>(p.position_bias + bias_at), bias);
    for (int c = 0; c < quad_channels; ++c) softmax.z[j][c] = ip::add(softmax.z[j][c], bias[c]);
  }
  softmax.exponentials(present);
  float* const to = p.pool_weights + group * p.grouped.index_kpool * head_dim + channel;
  IP_UNROLL
  for (int j = 0; j < Capacity; ++j) {
    if (j >= p.grouped.index_kpool) break;
    ip::store_global(reinterpret_cast<ip::Vec16*>(to + vectors.place(j) * head_dim),
                     softmax.weights(j, j < present));
  }
}

inline std::optional<std::string> channel_weights_unsupported(const OpArgs& any) {
  const auto* args = policy_args<ChannelWeightsArgs>(any);
  if (args == nullptr) return "it makes weights of channels";
  return bad_channel_weights(*args);
}

template <DType T>
void launch_channel_weights(const ChannelWeightsArgs& args, LaunchContext& context) {
  ChannelWeightsParams params = {group_params(args.grouped),
                                 std::countr_zero(static_cast<unsigned>(args.grouped.head_dim)),
                                 args.position_bias, args.pool_weights};
  params.grouped.vectors = static_cast<const std::byte*>(args.gate_scores);
  const std::int64_t threads = args.grouped.group_count * (args.grouped.head_dim / quad_channels);
  const auto launch = [&](void (*kernel)(ChannelWeightsParams)) {
    ip_launch(context, blocks_for(threads, policy_threads), policy_threads, 0, kernel, params);
  };
  switch (channel_capacity(args.grouped.index_kpool)) {
    case 4:
      return launch(channel_weights_kernel<T, 4>);
    case 8:
      return launch(channel_weights_kernel<T, 8>);
    default:
      return launch(channel_weights_kernel<T, 16>);
  }
}

inline void channel_weights_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<ChannelWeightsArgs>(any);
  if (args.grouped.storage == DType::f32) return launch_channel_weights<DType::f32>(args, context);
  if (args.grouped.storage == DType::f16) return launch_channel_weights<DType::f16>(args, context);
  launch_channel_weights<DType::bf16>(args, context);
}

inline Work channel_weights_work(const OpArgs& any) {
  return declared_channel_weights(the_policy_args<ChannelWeightsArgs>(any));
}

extern const Kernel channel_weights;
const Kernel channel_weights = {"channel_weights", INDEXPOOL_TARGET_NAME,
                                channel_weights_unsupported, channel_weights_launch,
                                channel_weights_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
