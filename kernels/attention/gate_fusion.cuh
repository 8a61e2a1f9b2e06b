// gate_fusion: mixes two branches of a hybrid layer, outputs = g a + (1 - g) b with
// g = sigmoid(gate_logits), one gate per token and head. Where g is exactly 1 or 0 the result is a
// or b bit for bit: selected, as 0 times the other branch may not be 0.
//
// gate_logits [N, H], a, b, outputs [N, H, V] f32. Four channels a thread; 12 bytes per channel,
// 4 per gate.
#pragma once

#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/sigmoid.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct GateFusionParams {
  const float* gate_logits;
  const float* a;
  const float* b;
  std::int64_t quads;  // of four channels
  std::int32_t quads_per_head;
  float* outputs;
};

struct alignas(16) Quad {
  float x[fusion_channels];
};

template <int Threads>
IP_KERNEL(Threads, elementwise_blocks_per_sm)
void gate_fusion_kernel(GateFusionParams p) {
  const std::int64_t quad = ip::block_index() * Threads + ip::thread_index();
  if (quad >= p.quads) return;
  const float gate = sigmoid_f32(ip::load_global(p.gate_logits + quad / p.quads_per_head));
  const Quad a = ip::load_global(reinterpret_cast<const Quad*>(p.a) + quad);
  const Quad b = ip::load_global(reinterpret_cast<const Quad*>(p.b) + quad);
  const float rest = ip::sub(1.0f, gate);
  Quad mixed;
  IP_UNROLL
  for (int i = 0; i < fusion_channels; ++i) {
    const float sum = ip::fma(gate, a.x[i], ip::mul(rest, b.x[i]));
    mixed.x[i] = gate == 1 ? a.x[i] : gate == 0 ? b.x[i] : sum;
  }
  ip::store_global(reinterpret_cast<Quad*>(p.outputs) + quad, mixed);
}

inline std::optional<std::string> gate_fusion_unsupported(const OpArgs& any) {
  const auto* args = attention_args<GateFusionArgs>(any);
  if (args == nullptr) return "it mixes two branches";
  return bad_fusion(*args);
}

inline void gate_fusion_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<GateFusionArgs>(any);
  const std::int32_t per_head = args.value_dim / fusion_channels;
  const GateFusionParams params = {
      args.gate_logits, args.a, args.b, args.rows * args.heads * per_head, per_head, args.outputs};
  ip_launch(context, blocks_for(params.quads, elementwise_threads), elementwise_threads, 0,
            gate_fusion_kernel<elementwise_threads>, params);
}

inline Work gate_fusion_work(const OpArgs& any) {
  return declared_gate_fusion(the_attention_args<GateFusionArgs>(any));
}

extern const Kernel gate_fusion;
const Kernel gate_fusion = {"gate_fusion", INDEXPOOL_TARGET_NAME, gate_fusion_unsupported,
                            gate_fusion_launch, gate_fusion_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
