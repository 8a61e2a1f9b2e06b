// tfidf_weights: pool weights from how often a vector was used, where it lies and what it says.
//
//   w_i = mix0 tf_i idf_i + mix1 position_i + mix2 (1 + cos(q, V_i)) / 2
//   tf_i = accesses_i / sum of the group's (0 when there is none)
//   idf_i = log((1 + all groups) / (1 + groups_accessed_i)) + 1
//
// In order: 1 + all groups rounded to f32, one division, log within 1 ulp, + 1; cosine as in
// dot.cuh; mix2 relevance + (mix1 position + (mix0 (tf idf))) by fused multiply-adds. Absent
// vectors get 0 and their accesses do not count. At most 2^24 accesses each, so that all are exact.
//
// Shapes and lanes as in additive_weights.cuh; accesses, groups_accessed [G, m] i32, position_terms
// [m] f32. Every lane reads all access counts of its group: one word an instruction and group.
#pragma once

#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/dot.cuh"
#include "indexpool/kernels/policy/logarithm.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct TfidfWeightsParams {
  GroupParams grouped;
  const std::byte* queries;
  const std::int32_t* accesses;
  const std::int32_t* groups_accessed;
  const float* position_terms;
  float groups_and_one;
  float mix[3];
  float* pool_weights;
};

template <DType T, int Pieces>
IP_KERNEL(policy_threads, dot_blocks_per_sm(Pieces))
void tfidf_weights_kernel(TfidfWeightsParams p) {
  const GroupPlace place = place_of(p.grouped);
  if (!place.warp_active) return;
  const GroupVectors vectors = vectors_of(p.grouped, place);
  const auto query = load_query<T, Pieces>(p.queries, p.grouped, place);
  const std::int64_t row = place.group * p.grouped.index_kpool;
  std::int32_t total = 0;
  for (int j = 0; j < vectors.present(); ++j)
    total += ip::load_global(p.accesses + row + vectors.place(j));
  const float query_square = sum_over(p.grouped.lanes, lane_dot(query, query));
  const auto weight_of = [&](int i, const Dots& dots) {
    const auto accesses = static_cast<float>(ip::load_global(p.accesses + row + i));
    const float tf = total > 0 ? ip::div(accesses, static_cast<float>(total)) : 0.0f;
    const auto accessed = static_cast<std::uint32_t>(ip::load_global(p.groups_accessed + row + i));
    const float rarity = log_f32(ip::div(p.groups_and_one, static_cast<float>(accessed + 1)));
    const float relevance = ip::mul(ip::add(1.0f, cosine(dots, query_square)), 0.5f);
    const float used = ip::mul(p.mix[0], ip::mul(tf, ip::add(rarity, 1.0f)));
    const float placed = ip::fma(p.mix[1], ip::load_global(p.position_terms + i), used);
    return ip::fma(p.mix[2], relevance, placed);
  };
  make_weights<true>(p.grouped, place, vectors, query, p.pool_weights, weight_of);
}

inline std::optional<std::string> tfidf_weights_unsupported(const OpArgs& any) {
  const auto* args = policy_args<TfidfWeightsArgs>(any);
  if (args == nullptr) return "it makes weights of access statistics";
  return bad_tfidf_weights(*args);
}

inline void tfidf_weights_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_policy_args<TfidfWeightsArgs>(any);
  const TfidfWeightsParams params = {group_params(args.grouped),
                                     static_cast<const std::byte*>(args.queries),
                                     args.accesses,
                                     args.groups_accessed,
                                     args.position_terms,
                                     static_cast<float>(args.all_groups + 1),
                                     {args.mix[0], args.mix[1], args.mix[2]},
                                     args.pool_weights};
  with_group_instance(args.grouped.storage, args.grouped.head_dim, [&]<DType T, int Pieces>() {
    ip_launch(context, group_blocks(args.grouped), policy_threads, 0,
              tfidf_weights_kernel<T, Pieces>, params);
  });
}

inline Work tfidf_weights_work(const OpArgs& any) {
  return declared_tfidf_weights(the_policy_args<TfidfWeightsArgs>(any));
}

extern const Kernel tfidf_weights;
const Kernel tfidf_weights = {"tfidf_weights", INDEXPOOL_TARGET_NAME, tfidf_weights_unsupported,
                              tfidf_weights_launch, tfidf_weights_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
