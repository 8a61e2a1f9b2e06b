// gated_weights: pool weights of gated pooling, from the hidden state's part that hidden_gates made
// and the vectors' part.
//
//   w_i = 1 / (1 + exp(-z_i)),  z_i = (hidden_gates[t, h] + gate_weight[h, X:] . V_i) +
//   gate_bias[h]
//
// Group g belongs to token t = g / heads and head h = g % heads. Absent vectors get 0. Vectors
// [R, D] and gate_weight [heads, X + D] in the storage dtype, hidden_gates [T, heads], gate_bias
// [heads], pool_weights [G, m] f32. Lanes as in additive_weights.cuh; the gate's row is read once a
// group. Bytes per group: (m + 1) D elements, a record of 16 and 8 in, 4 m out.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/dot.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct GatedWeightsParams {
  GroupParams grouped;
  const std::byte* gate_weight;
  const float* gate_bias;
  const float* hidden_gates;
  std::int32_t hidden, heads;
  float* pool_weights;
};

template <DType T, int Pieces>
IP_KERNEL(policy_threads, dot_blocks_per_sm(Pieces))
void gated_weights_kernel(GatedWeightsParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  Row<T, Pieces> gate = {};
  float hidden_gate = 0, bias = 0;
  if (place.active) {
    const std::int64_t head = place.group - quotient(place.group, p.heads) * p.heads;
    const std::int64_t column = head * (p.hidden + p.grouped.head_dim) + p.hidden;
    gate = load_row<T, Pieces>(p.gate_weight + column * bytes_of(T), place.lane);
    hidden_gate = ip::load_global(p.hidden_gates + place.group);
    bias = ip::load_global(p.gate_bias + head);
  }
  const auto weight_of = [&](int, const Dots& dots) {
    const float z = ip::add(ip::add(hidden_gate, dots.dot), bias);
    return ip::div(1.0f, ip::add(1.0f, exp_f32(-z)));
  };
  make_weights<false>(p.grouped, place, vectors, gate, p.pool_weights, weight_of);
}

inline std::optional<std::string> gated_weights_unsupported(const OpArgs& any) {
  const auto* args = policy_args<GatedWeightsArgs>(any);
  if (args == nullptr) return "it makes weights of gates";
  return bad_gated_weights(*args);
}

inline void gated_weights_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<GatedWeightsArgs>(any);
  const GatedWeightsParams params = {group_params(args.grouped),
                                     static_cast<const std::byte*>(args.gate_weight),
                                     args.gate_bias,
                                     args.hidden_gates,
                                     args.hidden,
                                     args.heads,
                                     args.pool_weights};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              gated_weights_kernel<T, Pieces>, params);
  });
}

inline Work gated_weights_work(const OpArgs& any) {
  return declared_gated_weights(the_policy_args<GatedWeightsArgs>(any));
}

extern const Kernel gated_weights;
const Kernel gated_weights = {"gated_weights", INDEXPOOL_TARGET_NAME, gated_weights_unsupported,
                              gated_weights_launch, gated_weights_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
