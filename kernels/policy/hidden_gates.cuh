// hidden_gates: the hidden state's part of gated pooling's weights, once for all vectors of a
// token, on matrix cores.
//
//   hidden_gates[t, h] = sum_c hidden_states[t, c] gate_weight[h, c],  c < X
//
// hidden_states [T, X], gate_weight [heads, X + D] in the storage dtype, hidden_gates [T, heads]
// f32; X a multiple of 16, at most 16 heads.
//
// bf16, f16: a block takes 16 tokens; its eight warps take turns at chunks of 32 channels
// (gate_product.cuh), then add up their sums in order of the warps through shared memory. Zeros
// stand for tokens, heads and channels that do not exist. Sums over K as the instruction
// accumulates. f32: a warp a token, eight channels a lane and step, fused multiply-adds in order,
// then the tree over its lanes.
//
// Bytes per block: 16 X + heads X elements in, 64 heads out (f32: per token).
#pragma once

#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/gate_product.cuh"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <DType T>
IP_KERNEL(gate_threads, gate_blocks_per_sm)
void hidden_gates_mma(HiddenGatesParams p) {
  const std::int64_t first_token = ip::block_index() * gate_tokens;
  auto* const sums = reinterpret_cast<float*>(ip::dynamic_shared());
  const int tiles = p.heads > gate_tile_heads ? 2 : 1, lane = ip::lane_index();
  float d[2][4] = {};
  multiply_share<T>(p, first_token, d);
  IP_UNROLL
  for (int tile = 0; tile < 2; ++tile) {
    if (tile >= tiles) break;
    const int first = (ip::warp_index() * tiles + tile) * gate_fragment;
    IP_UNROLL
    for (int i = 0; i < 4; ++i) ip::store_shared(sums + first + 32 * i + lane, d[tile][i]);
  }
  ip::sync_block();
  // Thread 128 tile + 32 i + lane: register i of that lane's fragment.
  const int element = ip::thread_index();
  if (element >= tiles * gate_fragment) return;
  float sum = ip::load_shared(sums + element);
  for (int warp = 1; warp < gate_warps; ++warp)
    sum = ip::add(sum, ip::load_shared(sums + warp * tiles * gate_fragment + element));
  const int i = element >> 5 & 3;
  const std::int64_t token = first_token + (lane >> 2) + 8 * (i >> 1);
  const int head = gate_tile_heads * (element / gate_fragment) + 2 * (lane & 3) + (i & 1);
  if (token < p.tokens && head < p.heads)
    ip::store_global(p.hidden_gates + token * p.heads + head, sum);
}

template <int Threads>
IP_KERNEL(Threads, gate_blocks_per_sm)
void hidden_gates_fma(HiddenGatesParams p) {
  const std::int64_t token = ip::block_index() * (Threads / 32) + ip::warp_index();
  if (token >= p.tokens) return;
  const std::byte* const state = p.hidden_states + token * p.hidden * 4;
  float sums[most_gate_heads] = {};
  for (int at = channels_per_lane * ip::lane_index(); at < p.hidden; at += piece_channels) {
    float x[channels_per_lane], w[channels_per_lane];
    unpack<DType::f32>(load_piece<DType::f32>(state + at * 4), x);
    IP_UNROLL
    for (int head = 0; head < most_gate_heads; ++head) {
      if (head >= p.heads) break;
      const std::int64_t column = std::int64_t{head} * p.row_channels + at;
      unpack<DType::f32>(load_piece<DType::f32>(p.gate_weight + column * 4), w);
      for (int i = 0; i < channels_per_lane; ++i) sums[head] = ip::fma(x[i], w[i], sums[head]);
    }
  }
  float mine = 0;
  IP_UNROLL
  for (int head = 0; head < most_gate_heads; ++head) {
    if (head >= p.heads) break;
    const float sum = sum_over(32, sums[head]);
    if (ip::lane_index() == head) mine = sum;
  }
  if (ip::lane_index() < p.heads)
    ip::store_global(p.hidden_gates + token * p.heads + ip::lane_index(), mine);
}

inline std::optional<std::string> hidden_gates_unsupported(const OpArgs& any) {
  const auto* args = policy_args<HiddenGatesArgs>(any);
  if (args == nullptr) return "it makes gates of hidden states";
  return bad_hidden_gates(*args);
}

inline void hidden_gates_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<HiddenGatesArgs>(any);
  const HiddenGatesParams params = {static_cast<const std::byte*>(args.hidden_states),
                                    static_cast<const std::byte*>(args.gate_weight),
                                    args.tokens,
                                    args.hidden,
                                    args.hidden + args.head_dim,
                                    args.heads,
                                    args.hidden_gates};
  if (args.storage == DType::f32)
    return ip_launch(context, blocks_for(args.tokens, policy_threads / 32), policy_threads, 0,
                     hidden_gates_fma<policy_threads>, params);
  ip_launch(
      context, blocks_for(args.tokens, gate_tokens), gate_threads, gate_shared_bytes(args.heads),
      args.storage == DType::f16 ? hidden_gates_mma<DType::f16> : hidden_gates_mma<DType::bf16>,
      params);
}

inline Work hidden_gates_work(const OpArgs& any) {
  return declared_hidden_gates(the_policy_args<HiddenGatesArgs>(any));
}
inline Accumulation hidden_gates_accumulation(const OpArgs& any) {
  return the_policy_args<HiddenGatesArgs>(any).storage == DType::f32 ? Accumulation::f32_fma
                                                                     : Accumulation::mma_f16_bf16;
}

extern const Kernel hidden_gates;
const Kernel hidden_gates = {"hidden_gates",      INDEXPOOL_TARGET_NAME, hidden_gates_unsupported,
                             hidden_gates_launch, hidden_gates_work,     hidden_gates_accumulation};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
