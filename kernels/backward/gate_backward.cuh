// gate_backward: back through the sigmoid of gated pooling, from the stored weights, to the vectors
// and to what is added up for gate, bias and hidden state.
//
//   dz_i = grad_weights_i w_i (1 - w_i), head h = g % heads
//   grad_vectors[g, i] = held_vectors[g, i] + dz_i gate_weight[h, X:], 0 where i is absent
//   grad_gate[g] = sum_i dz_i V_i, grad_hidden_gates[g] = sum_i dz_i, in order of the present i
//
// Vectors [R, D] and gate_weight [heads, X + D] in the storage dtype; pool_weights, grad_weights
// [G, m], held_vectors, grad_vectors [G, m, D], grad_gate [G, D], grad_hidden_gates [G] f32. Lanes
// hold groups as in weighted_pool.cuh, piece by piece, so that a lane has eight channels of several
// slots in flight. Bytes per group: m D elements, 4 m D, the gate's row, a record of 16 and 8 m (a
// piece) in, 4 m D + 4 D + 4 out.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/slots.cuh"
#include "indexpool/kernels/paged.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct GateBackwardParams {
  GroupParams grouped;
  const std::byte* gate_weight;
  std::int32_t hidden, heads;
  const float* pool_weights;
  const float* grad_weights;
  const float* held_vectors;
  float* grad_vectors;
  float* grad_gate;
  float* grad_hidden_gates;
};

// Slot j of a group: its vector, the gradient it already has, and dz.
template <DType T>
struct GateSlot {
  Piece<T> vector = {};
  Piece<DType::f32> held = {};
  float dz = 0;

  IP_DEVICE void load(const GateBackwardParams& p, const GroupVectors& vectors, std::int64_t group,
                      int j, int channel) {
    const int i = vectors.place(j);
    const std::int64_t row = vectors.record.first_row + p.grouped.offsets[i];
    const std::int64_t at = group * p.grouped.index_kpool + i;
    vector = load_piece<T>(p.grouped.vectors + (row * p.grouped.head_dim + channel) * bytes_of(T));
    const float* const slot = p.held_vectors + slot_of(p.grouped, group, i) + channel;
    held = load_piece<DType::f32>(reinterpret_cast<const std::byte*>(slot));
    const float w = ip::load_global(p.pool_weights + at);
    dz = ip::mul(ip::mul(ip::load_global(p.grad_weights + at), w), ip::sub(1.0f, w));
  }
};

// One piece of a group of an active lane; returns sum_i dz_i.
template <DType T>
IP_DEVICE float gate_piece(const GateBackwardParams& p, const GroupPlace& place,
                           const GroupVectors& vectors, std::int64_t head, int piece) {
  const int channel = piece * piece_channels + place.lane * channels_per_lane;
  const std::int64_t column = head * (p.hidden + p.grouped.head_dim) + p.hidden + channel;
  float gate[channels_per_lane], to_gate[channels_per_lane] = {}, sum = 0;
  unpack<T>(load_piece<T>(p.gate_weight + column * bytes_of(T)), gate);
  for (int first = 0; first < p.grouped.index_kpool; first += slots_in_flight) {
    GateSlot<T> slots[slots_in_flight];
    IP_UNROLL
    for (int k = 0; k < slots_in_flight; ++k)
      if (first + k < vectors.present()) slots[k].load(p, vectors, place.group, first + k, channel);
    IP_UNROLL
    for (int k = 0; k < slots_in_flight; ++k) {
      if (first + k >= p.grouped.index_kpool) break;
      float v[channels_per_lane], to_vector[channels_per_lane];
      unpack<T>(slots[k].vector, v);
      unpack<DType::f32>(slots[k].held, to_vector);
      sum = ip::add(sum, slots[k].dz);
      IP_UNROLL
      for (int c = 0; c < channels_per_lane; ++c) {
        to_vector[c] = ip::fma(slots[k].dz, gate[c], to_vector[c]);
        to_gate[c] = ip::fma(slots[k].dz, v[c], to_gate[c]);
      }
      const int i = vectors.place(first + k);
      store_lane_piece(p.grad_vectors + slot_of(p.grouped, place.group, i), piece, place.lane,
                       to_vector);
    }
  }
  store_lane_piece(p.grad_gate + place.group * p.grouped.head_dim, piece, place.lane, to_gate);
  return sum;
}

template <DType T, int Pieces>
IP_KERNEL(policy_threads, gate_backward_blocks_per_sm)
void gate_backward_kernel(GateBackwardParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const std::int64_t head = place.group - quotient(place.group, p.heads) * p.heads;
  float sum = 0;
  for (int piece = 0; piece < Pieces; ++piece) sum = gate_piece<T>(p, place, vectors, head, piece);
  if (place.lane == 0) ip::store_global(p.grad_hidden_gates + place.group, sum);
}

inline std::optional<std::string> gate_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<GateBackwardArgs>(any);
  if (args == nullptr) return "it goes back through gates";
  return bad_gate_backward(*args);
}

inline void gate_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<GateBackwardArgs>(any);
  const GateBackwardParams params = {group_params(args.grouped),
                                     static_cast<const std::byte*>(args.gate_weight),
                                     args.hidden,
                                     args.heads,
                                     args.pool_weights,
                                     args.grad_weights,
                                     args.held_vectors,
                                     args.grad_vectors,
                                     args.grad_gate,
                                     args.grad_hidden_gates};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              gate_backward_kernel<T, Pieces>, params);
  });
}

inline Work gate_backward_work(const OpArgs& any) {
  return declared_gate_backward(the_backward_args<GateBackwardArgs>(any));
}

extern const Kernel gate_backward;
const Kernel gate_backward = {"gate_backward", INDEXPOOL_TARGET_NAME, gate_backward_unsupported,
                              gate_backward_launch, gate_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
