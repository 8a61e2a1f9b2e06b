// role_softmax_backward: back through the softmax of composite pooling, from the stored weights.
//
//   grad_matrix[set, i] = w_i (b_i - sum_j w_j b_j), b = grad_weights
//
// All [sets, m] f32. Lanes hold rows as in role_weights.cuh; the sum goes by a tree over them. 8 m
// bytes in, 4 m out per set.
#pragma once

#include <bit>

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct RoleSoftmaxBackwardParams {
  std::int64_t sets;
  std::int32_t index_kpool, lanes, lanes_log2;
  const float* pool_weights;
  const float* grad_weights;
  float* grad_matrix;
};

template <int Threads>
IP_KERNEL(Threads, role_blocks_per_sm)
void role_softmax_backward_kernel(RoleSoftmaxBackwardParams p) {
  const std::int64_t thread = ip::block_index() * Threads + ip::thread_index();
  if ((thread - ip::lane_index()) >> p.lanes_log2 >= p.sets) return;  // the whole warp
  const std::int64_t set = thread >> p.lanes_log2;
  const int i = ip::lane_index() & (p.lanes - 1);
  const bool active = set < p.sets && i < p.index_kpool;
  const std::int64_t at = set * p.index_kpool + i;
  const float w = active ? ip::load_global(p.pool_weights + at) : 0.0f;
  const float b = active ? ip::load_global(p.grad_weights + at) : 0.0f;
  const float mean = sum_over(p.lanes, ip::mul(w, b));
  if (active) ip::store_global(p.grad_matrix + at, ip::mul(w, ip::sub(b, mean)));
}

inline std::optional<std::string> role_softmax_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<RoleSoftmaxBackwardArgs>(any);
  if (args == nullptr) return "it goes back through a softmax of roles";
  return bad_role_softmax_backward(*args);
}

inline void role_softmax_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<RoleSoftmaxBackwardArgs>(any);
  const int lanes = role_lanes(args.index_kpool);
  const RoleSoftmaxBackwardParams params = {args.sets,
                                            args.index_kpool,
                                            lanes,
                                            std::countr_zero(static_cast<unsigned>(lanes)),
                                            args.pool_weights,
                                            args.grad_weights,
                                            args.grad_matrix};
  ip_launch(context, blocks_for(args.sets, policy_threads / lanes), policy_threads, 0,
            role_softmax_backward_kernel<policy_threads>, params);
}

inline Work role_softmax_backward_work(const OpArgs& any) {
  return declared_role_softmax_backward(the_backward_args<RoleSoftmaxBackwardArgs>(any));
}

extern const Kernel role_softmax_backward;
const Kernel role_softmax_backward = {"role_softmax_backward", INDEXPOOL_TARGET_NAME,
                                      role_softmax_backward_unsupported,
                                      role_softmax_backward_launch, role_softmax_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
