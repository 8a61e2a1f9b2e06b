// hidden_gate_backward: from the gradients of a gate's hidden part to its weights, 16 tokens at a
// time.
//
//   grad_gate[b, h, x] = sum over tokens t of block b, in order, of grad_hidden_gates[t, h] h_t[x]
//
// hidden_states [T, X] in the storage dtype, grad_hidden_gates [T, heads], grad_gate [ceil(T / 16),
// heads, X] f32, which sum_rows adds over blocks. A lane has eight channels of a block and head, X
// / 8 neighbouring lanes a head, neighbouring heads next to it, so that hidden states come from the
// cache but once. Bytes per block: 16 X elements and 64 a head in, 4 X a head out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct HiddenGateBackwardParams {
  const std::byte* hidden_states;
  std::int64_t tokens;
  std::int32_t hidden, heads;
  const float* grad_hidden_gates;
  float* grad_gate;
};

template <DType T>
IP_KERNEL(policy_threads, hidden_backward_blocks_per_sm)
void hidden_gate_backward_kernel(HiddenGateBackwardParams p) {
  const std::int64_t thread = ip::block_index() * policy_threads + ip::thread_index();
  const int pieces = p.hidden / channels_per_lane;
  const std::int64_t row = quotient(thread, pieces), block = quotient(row, p.heads);
  const std::int64_t first = block * gate_tokens;
  if (first >= p.tokens) return;
  const std::int64_t head = row - block * p.heads;
  const auto channel = static_cast<int>(thread - row * pieces) * channels_per_lane;
  float sum[channels_per_lane] = {};
  IP_UNROLL
  for (int k = 0; k < gate_tokens; ++k) {
    if (first + k >= p.tokens) break;
    float hidden[channels_per_lane];
    const float dz = ip::load_global(p.grad_hidden_gates + (first + k) * p.heads + head);
    unpack<T>(load_piece<T>(p.hidden_states + ((first + k) * p.hidden + channel) * bytes_of(T)),
              hidden);
    IP_UNROLL
    for (int c = 0; c < channels_per_lane; ++c) sum[c] = ip::fma(dz, hidden[c], sum[c]);
  }
  float* const to = p.grad_gate + row * p.hidden + channel;
  store_piece<DType::f32>(reinterpret_cast<std::byte*>(to), pack<DType::f32>(sum));
}

inline std::optional<std::string> hidden_gate_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<HiddenGateBackwardArgs>(any);
  if (args == nullptr) return "it takes gradients of gates back to their weights";
  return bad_hidden_gate_backward(*args);
}

inline void hidden_gate_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<HiddenGateBackwardArgs>(any);
  const HiddenGateBackwardParams params = {static_cast<const std::byte*>(args.hidden_states),
                                           args.tokens,
                                           args.hidden,
                                           args.heads,
                                           args.grad_hidden_gates,
                                           args.grad_gate};
  const std::int64_t threads =
      blocks_for(args.tokens, gate_tokens) * args.heads * (args.hidden / channels_per_lane);
  const auto launch = [&](void (*kernel)(HiddenGateBackwardParams)) {
    ip_launch(context, blocks_for(threads, policy_threads), policy_threads, 0, kernel, params);
  };
  if (args.storage == DType::f32) return launch(hidden_gate_backward_kernel<DType::f32>);
  if (args.storage == DType::f16) return launch(hidden_gate_backward_kernel<DType::f16>);
  launch(hidden_gate_backward_kernel<DType::bf16>);
}

inline Work hidden_gate_backward_work(const OpArgs& any) {
  return declared_hidden_gate_backward(the_backward_args<HiddenGateBackwardArgs>(any));
}

extern const Kernel hidden_gate_backward;
const Kernel hidden_gate_backward = {"hidden_gate_backward", INDEXPOOL_TARGET_NAME,
                                     hidden_gate_backward_unsupported, hidden_gate_backward_launch,
                                     hidden_gate_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
