// hidden_states_backward: from the gradients of a gate's hidden part to the hidden states.
//
//   grad_hidden_states[t, x] = sum_h grad_hidden_gates[t, h] gate_weight[h, x], x < X, h in order
//
// gate_weight [heads, X + D] in the storage dtype, grad_hidden_gates [T, heads], grad_hidden_states
// [T, X] f32. A lane has eight channels of a token, X / 8 neighbouring lanes a token. Bytes per
// token: X elements and 4 a head (the gate's rows from the cache) in, 4 X out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct HiddenStatesBackwardParams {
  const std::byte* gate_weight;
  std::int64_t tokens;
  std::int32_t hidden, head_dim, heads;
  const float* grad_hidden_gates;
  float* grad_hidden_states;
};

template <DType T>
IP_KERNEL(policy_threads, hidden_backward_blocks_per_sm)
void hidden_states_backward_kernel(HiddenStatesBackwardParams p) {
  const std::int64_t thread = ip::block_index() * policy_threads + ip::thread_index();
  const int pieces = p.hidden / channels_per_lane;
  const std::int64_t token = quotient(thread, pieces);
  if (token >= p.tokens) return;
  const auto channel = static_cast<int>(thread - token * pieces) * channels_per_lane;
  float sum[channels_per_lane] = {};
  for (int h = 0; h < p.heads; ++h) {
    float gate[channels_per_lane];
    const std::int64_t column = std::int64_t{h} * (p.hidden + p.head_dim) + channel;
    const float dz = ip::load_global(p.grad_hidden_gates + token * p.heads + h);
    unpack<T>(load_piece<T>(p.gate_weight + column * bytes_of(T)), gate);
    IP_UNROLL
    for (int c = 0; c < channels_per_lane; ++c) sum[c] = ip::fma(dz, gate[c], sum[c]);
  }
  float* const to = p.grad_hidden_states + token * p.hidden + channel;
  store_piece<DType::f32>(reinterpret_cast<std::byte*>(to), pack<DType::f32>(sum));
}

inline std::optional<std::string> hidden_states_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<HiddenStatesBackwardArgs>(any);
  if (args == nullptr) return "it takes gradients of gates back to hidden states";
  return bad_hidden_states_backward(*args);
}

inline void hidden_states_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<HiddenStatesBackwardArgs>(any);
  const HiddenStatesBackwardParams params = {static_cast<const std::byte*>(args.gate_weight),
                                             args.tokens,
                                             args.hidden,
                                             args.head_dim,
                                             args.heads,
                                             args.grad_hidden_gates,
                                             args.grad_hidden_states};
  const std::int64_t threads = args.tokens * (args.hidden / channels_per_lane);
  const auto launch = [&](void (*kernel)(HiddenStatesBackwardParams)) {
    ip_launch(context, blocks_for(threads, policy_threads), policy_threads, 0, kernel, params);
  };
  if (args.storage == DType::f32) return launch(hidden_states_backward_kernel<DType::f32>);
  if (args.storage == DType::f16) return launch(hidden_states_backward_kernel<DType::f16>);
  launch(hidden_states_backward_kernel<DType::bf16>);
}

inline Work hidden_states_backward_work(const OpArgs& any) {
  return declared_hidden_states_backward(the_backward_args<HiddenStatesBackwardArgs>(any));
}

extern const Kernel hidden_states_backward;
const Kernel hidden_states_backward = {"hidden_states_backward", INDEXPOOL_TARGET_NAME,
                                       hidden_states_backward_unsupported,
                                       hidden_states_backward_launch, hidden_states_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
