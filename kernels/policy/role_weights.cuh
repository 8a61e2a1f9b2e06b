// role_weights: pool weights of composite pooling, a softmax of each row of a learnable matrix.
//
//   pool_weights[set, i] = e_i / sum_j e_j,  e_i = exp(pool_matrix[set, i] - max_j pool_matrix)
//
// pool_matrix, pool_weights [sets, m] f32. A row lies in the next power of two of m lanes, one
// element a lane; the maximum and the sum go by trees over them. 4 m bytes in, 4 m out per set.
#pragma once

#include <bit>

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct RoleWeightsParams {
  const float* pool_matrix;
  std::int64_t sets;
  std::int32_t index_kpool, lanes, lanes_log2;
  float* pool_weights;
};

template <int Threads>
IP_KERNEL(Threads, role_blocks_per_sm)
void role_weights_kernel(RoleWeightsParams p) {
  const std::int64_t thread = ip::block_index() * Threads + ip::thread_index();
  if ((thread - ip::lane_index()) >> p.lanes_log2 >= p.sets) return;  // the whole warp
  const std::int64_t set = thread >> p.lanes_log2;
  const int i = ip::lane_index() & (p.lanes - 1);
  const bool active = set < p.sets && i < p.index_kpool;
  float score = ip::float_of(0xff800000u);  // -infinity: no part in the maximum
  if (active) score = ip::load_global(p.pool_matrix + set * p.index_kpool + i);
  const float largest = max_over(p.lanes, score);
  const float exponential = active ? exp_f32(ip::sub(score, largest)) : 0.0f;
  const float sum = sum_over(p.lanes, exponential);
  if (active) ip::store_global(p.pool_weights + set * p.index_kpool + i, ip::div(exponential, sum));
}

inline std::optional<std::string> role_weights_unsupported(const OpArgs& any) {
  const auto* args = policy_args<RoleWeightsArgs>(any);
  if (args == nullptr) return "it makes weights of roles";
  return bad_role_weights(*args);
}

inline void role_weights_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<RoleWeightsArgs>(any);
  const int lanes = role_lanes(args.index_kpool);
  const RoleWeightsParams params = {args.pool_matrix,
                                    args.sets,
                                    args.index_kpool,
                                    lanes,
                                    std::countr_zero(static_cast<unsigned>(lanes)),
                                    args.pool_weights};
  ip_launch(context, blocks_for(args.sets, policy_threads / lanes), policy_threads, 0,
            role_weights_kernel<policy_threads>, params);
}

inline Work role_weights_work(const OpArgs& any) {
  return declared_role_weights(the_policy_args<RoleWeightsArgs>(any));
}

extern const Kernel role_weights;
const Kernel role_weights = {"role_weights", INDEXPOOL_TARGET_NAME, role_weights_unsupported,
                             role_weights_launch, role_weights_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
