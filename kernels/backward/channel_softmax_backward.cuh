// channel_softmax_backward: back through the softmax of kpool and csa, from the stored weights.
//
//   grad_scores[g, i, c] = w_ic (b_ic - sum_j w_jc b_jc), b = grad_weights
//
// The sum in order of i; absent vectors have weight 0 and get 0. All [G, m, D] f32: the gradient of
// the gate scores by slot, and of the position bias once sum_rows has added it over groups. A lane
// takes four channels, 16 bytes of each row, everything read once. Bytes per group: 8 m D in, 4 m D
// out.
#pragma once

#include <bit>

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct ChannelSoftmaxBackwardParams {
  std::int64_t group_count;
  std::int32_t index_kpool, head_dim_log2;
  const float* pool_weights;
  const float* grad_weights;
  float* grad_scores;
};

// Four channels of up to `Capacity` slots.
template <int Capacity>
struct QuadGradients {
  ip::Vec16 w[Capacity], b[Capacity];

  IP_DEVICE static float channel(const ip::Vec16& of, int c) {
    return ip::float_of(c == 0 ? of.x : c == 1 ? of.y : c == 2 ? of.z : of.w);
  }
  IP_DEVICE float mean(int c) const {
    float sum = 0;
    IP_UNROLL
    for (int i = 0; i < Capacity; ++i) sum = ip::fma(channel(w[i], c), channel(b[i], c), sum);
    return sum;
  }
};

template <int Capacity>
IP_KERNEL(policy_threads, softmax_backward_blocks_per_sm(Capacity))
void channel_softmax_backward_kernel(ChannelSoftmaxBackwardParams p) {
  const std::int64_t first =
      (ip::block_index() * policy_threads + ip::thread_index()) * quad_channels;
  const std::int64_t group = first >> p.head_dim_log2;
  if (group >= p.group_count) return;
  const int head_dim = 1 << p.head_dim_log2, channel = static_cast<int>(first) & (head_dim - 1);
  const std::int64_t at = ((group * p.index_kpool) << p.head_dim_log2) + channel;
  QuadGradients<Capacity> quad = {};
  IP_UNROLL
  for (int i = 0; i < Capacity; ++i) {
    if (i >= p.index_kpool) continue;
    const std::int64_t slot = at + i * head_dim;
    quad.w[i] = ip::load_global(reinterpret_cast<const ip::Vec16*>(p.pool_weights + slot));
    quad.b[i] = ip::load_global(reinterpret_cast<const ip::Vec16*>(p.grad_weights + slot));
  }
  float mean[quad_channels];
  IP_UNROLL
  for (int c = 0; c < quad_channels; ++c) mean[c] = quad.mean(c);
  IP_UNROLL
  for (int i = 0; i < Capacity; ++i) {
    if (i >= p.index_kpool) break;
    std::uint32_t words[quad_channels];
    IP_UNROLL
    for (int c = 0; c < quad_channels; ++c) {
      const float apart = ip::sub(quad.channel(quad.b[i], c), mean[c]);
      words[c] = ip::bits_of(ip::mul(quad.channel(quad.w[i], c), apart));
    }
    ip::store_global(reinterpret_cast<ip::Vec16*>(p.grad_scores + at + i * head_dim),
                     ip::Vec16{words[0], words[1], words[2], words[3]});
  }
}

inline std::optional<std::string> channel_softmax_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<ChannelSoftmaxBackwardArgs>(any);
  if (args == nullptr) return "it goes back through a softmax of channels";
  return bad_channel_softmax_backward(*args);
}

inline void channel_softmax_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<ChannelSoftmaxBackwardArgs>(any);
  const ChannelSoftmaxBackwardParams params = {
      args.group_count,  args.index_kpool,  std::countr_zero(static_cast<unsigned>(args.head_dim)),
      args.pool_weights, args.grad_weights, args.grad_scores};
  const std::int64_t threads = args.group_count * (args.head_dim / quad_channels);
  const auto launch = [&](void (*kernel)(ChannelSoftmaxBackwardParams)) {
    ip_launch(context, blocks_for(threads, policy_threads), policy_threads, 0, kernel, params);
  };
  switch (channel_capacity(args.index_kpool)) {
    case 4:
      return launch(channel_softmax_backward_kernel<4>);
    case 8:
      return launch(channel_softmax_backward_kernel<8>);
    default:
      return launch(channel_softmax_backward_kernel<16>);
  }
}

inline Work channel_softmax_backward_work(const OpArgs& any) {
  return declared_channel_softmax_backward(the_backward_args<ChannelSoftmaxBackwardArgs>(any));
}

extern const Kernel channel_softmax_backward;
const Kernel channel_softmax_backward = {
    "channel_softmax_backward", INDEXPOOL_TARGET_NAME, channel_softmax_backward_unsupported,
    channel_softmax_backward_launch, channel_softmax_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
