// additive_weights: pool weights from position, content and age of each vector of a group.
//
//   w_i = alpha exp(-(d_i / sigma)^2 / 2) + beta content_i + gamma exp(-a_i / tau)
//   content_i = (1 + cos(q, V_i)) / 2, or cos(q, V_i) itself
//
// In order: x = d / sigma, position = exp(-0.5 (x x)), age = exp(-a / tau), cosine as in dot.cuh,
// then gamma age + (beta content + (alpha position)) by fused multiply-adds. Absent vectors get 0.
//
// Vectors [R, D], queries [G, D] in the storage dtype, distances, ages, pool_weights [G, m] f32.
// min(32, D / 8) lanes hold a group; lane l makes the weights of vectors l, l + lanes, ...
// Bytes per group: (m + 1) D elements, a record of 16 and 8 m in, 4 m out.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/dot.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct AdditiveWeightsParams {
  GroupParams grouped;
  const std::byte* queries;
  const float* distances;
  const float* ages;
  float alpha, beta, gamma, sigma, tau;
  bool raw_cosine;
  float* pool_weights;
};

template <DType T, int Pieces>
IP_KERNEL(policy_threads, dot_blocks_per_sm(Pieces))
void additive_weights_kernel(AdditiveWeightsParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const auto query = load_query<T, Pieces>(p.queries, p.grouped, place);
  const float query_square = sum_over(p.grouped.lanes, lane_dot(query, query));
  const std::int64_t row = place.group * p.grouped.index_kpool;
  const auto weight_of = [&](int i, const Dots& dots) {
    const float x = ip::div(ip::load_global(p.distances + row + i), p.sigma);
    const float position = exp_f32(ip::mul(ip::mul(x, x), -0.5f));
    const float age = exp_f32(ip::div(-ip::load_global(p.ages + row + i), p.tau));
    const float cos = cosine(dots, query_square);
    const float content = p.raw_cosine ? cos : ip::mul(ip::add(1.0f, cos), 0.5f);
    return ip::fma(p.gamma, age, ip::fma(p.beta, content, ip::mul(p.alpha, position)));
  };
  make_weights<true>(p.grouped, place, vectors, query, p.pool_weights, weight_of);
}

inline std::optional<std::string> additive_weights_unsupported(const OpArgs& any) {
  const auto* args = policy_args<AdditiveWeightsArgs>(any);
  if (args == nullptr) return "it makes weights of position, content and age";
  return bad_additive_weights(*args);
}

inline void additive_weights_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<AdditiveWeightsArgs>(any);
  const AdditiveWeightsParams params = {group_params(args.grouped),
                                        static_cast<const std::byte*>(args.queries),
                                        args.distances,
                                        args.ages,
                                        args.alpha,
                                        args.beta,
                                        args.gamma,
                                        args.sigma,
                                        args.tau,
                                        args.raw_cosine,
                                        args.pool_weights};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              additive_weights_kernel<T, Pieces>, params);
  });
}

inline Work additive_weights_work(const OpArgs& any) {
  return declared_additive_weights(the_policy_args<AdditiveWeightsArgs>(any));
}

extern const Kernel additive_weights;
const Kernel additive_weights = {"additive_weights", INDEXPOOL_TARGET_NAME,
                                 additive_weights_unsupported, additive_weights_launch,
                                 additive_weights_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
