// safe_gate: the decay of linear attention from its features,
// log_decay = -5 sigmoid(exp(a_log) (features + dt_bias)), which stays within [-5, 0].
//
// features [N, H, K] storage dtype, a_log [H], dt_bias [H, K], log_decay [N, H, K] f32. Eight
// channels a thread; a feature and a bias in, 4 bytes out per channel.
#pragma once

#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/sigmoid.cuh"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct SafeGateParams {
  const std::byte* features;
  const float* a_log;
  const float* dt_bias;
  std::int64_t pieces;  // of eight channels
  std::int32_t heads, pieces_per_head;
  float* log_decay;
};

template <DType T>
IP_KERNEL(elementwise_threads, elementwise_blocks_per_sm)
void safe_gate_kernel(SafeGateParams p) {
  const std::int64_t index = ip::block_index() * elementwise_threads + ip::thread_index();
  if (index >= p.pieces) return;
  const std::int64_t of_heads = index % (std::int64_t{p.heads} * p.pieces_per_head);
  const auto features = load_piece<T>(p.features + index * channels_per_lane * bytes_of(T));
  const auto biases = load_piece<DType::f32>(
      reinterpret_cast<const std::byte*>(p.dt_bias + of_heads * channels_per_lane));
  const float steepness = exp_f32(ip::load_global(p.a_log + of_heads / p.pieces_per_head));
  float x[channels_per_lane], bias[channels_per_lane];
  unpack<T>(features, x);
  unpack<DType::f32>(biases, bias);
  for (int i = 0; i < channels_per_lane; ++i)
    x[i] = ip::mul(-5.0f, sigmoid_f32(ip::mul(steepness, ip::add(x[i], bias[i]))));
  store_piece<DType::f32>(reinterpret_cast<std::byte*>(p.log_decay + index * channels_per_lane),
                          pack<DType::f32>(x));
}

inline std::optional<std::string> safe_gate_unsupported(const OpArgs& any) {
  const auto* args = attention_args<SafeGateArgs>(any);
  if (args == nullptr) return "it makes decays of features";
  return bad_safe_gate(*args);
}

inline void safe_gate_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<SafeGateArgs>(any);
  const std::int32_t per_head = args.key_dim / channels_per_lane;
  const SafeGateParams params = {static_cast<const std::byte*>(args.features),
                                 args.a_log,
                                 args.dt_bias,
                                 args.rows * args.heads * per_head,
                                 args.heads,
                                 per_head,
                                 args.log_decay};
  const auto kernel = args.storage == DType::f32   ? safe_gate_kernel<DType::f32>
                      : args.storage == DType::f16 ? safe_gate_kernel<DType::f16>
                                                   : safe_gate_kernel<DType::bf16>;
  ip_launch(context, blocks_for(params.pieces, elementwise_threads), elementwise_threads, 0, kernel,
            params);
}

inline Work safe_gate_work(const OpArgs& any) {
  return declared_safe_gate(the_attention_args<SafeGateArgs>(any));
}

extern const Kernel safe_gate;
const Kernel safe_gate = {"safe_gate", INDEXPOOL_TARGET_NAME, safe_gate_unsupported,
                          safe_gate_launch, safe_gate_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
