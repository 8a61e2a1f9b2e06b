// tfidf_terms_backward: what mixture and position terms of tfidf weights get from the weights'
// gradients b.
//
//   term_rows[warp] = sum over the warp's groups g and their present i of
//     b (tf idf, position_terms_i, (1 + cos) / 2)
//   position_rows[g, i] = mix1 b
//
// tf idf as in tfidf_weights.cuh, in its order, but that the group's accesses are added by the tree
// over its lanes (whole numbers: the same sum). Absent vectors' accesses do not count, their b is
// 0.
//
// accesses, groups_accessed [G, m] i32, position_terms [m], cosines, grad_weights, position_rows
// [G, m], term_rows [term_row_count, 3] f32. A lane has one slot (terms.cuh). A record of 16, 16 m
// bytes and the position terms in per group, 4 m out, and 12 per warp.
#pragma once

#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/terms.cuh"
#include "indexpool/kernels/policy/logarithm.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct TfidfTermsBackwardParams {
  SlotParams slots;
  const VectorGroup* groups;
  const std::int32_t* accesses;
  const std::int32_t* groups_accessed;
  const float* position_terms;
  const float* cosines;
  const float* grad_weights;
  float groups_and_one, position_share;
  float* term_rows;
  float* position_rows;
};

IP_DEVICE void tfidf_slot(const TfidfTermsBackwardParams& p, const SlotPlace& place,
                          std::uint32_t accesses, std::uint32_t total,
                          float (&terms)[tfidf_terms]) {
  const float b = ip::load_global(p.grad_weights + place.at);
  const float tf =
      total > 0 ? ip::div(static_cast<float>(accesses), static_cast<float>(total)) : 0.0f;
  const auto seen = static_cast<std::uint32_t>(ip::load_global(p.groups_accessed + place.at));
  const float rarity = log_f32(ip::div(p.groups_and_one, static_cast<float>(seen + 1)));
  const float cos = ip::load_global(p.cosines + place.at);
  terms[0] = ip::mul(b, ip::mul(tf, ip::add(rarity, 1.0f)));
  terms[1] = ip::mul(b, ip::load_global(p.position_terms + place.i));
  terms[2] = ip::mul(b, ip::mul(ip::add(1.0f, cos), 0.5f));
  ip::store_global(p.position_rows + place.at, ip::mul(p.position_share, b));
}

template <int Threads>
IP_KERNEL(Threads, role_blocks_per_sm)
void tfidf_terms_backward_kernel(TfidfTermsBackwardParams p) {
  const SlotPlace place = slot_place<Threads>(p.slots);
  if (!place.warp_active) return;
  std::uint32_t accesses = 0;
  if (place.active) {
    const VectorGroup record = load_record(p.groups + place.group);
    const auto found = static_cast<std::uint32_t>(ip::load_global(p.accesses + place.at));
    accesses = place.i < record.absent ? 0 : found;
  }
  const std::uint32_t total = sum_over(p.slots.lanes, accesses);
  float terms[tfidf_terms] = {};
  if (place.active) tfidf_slot(p, place, accesses, total, terms);
  store_term_sums(terms, p.term_rows, place.warp);
}

inline std::optional<std::string> tfidf_terms_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<TfidfTermsBackwardArgs>(any);
  if (args == nullptr) return "it goes back to mixture and position terms of tfidf weights";
  return bad_tfidf_terms_backward(*args);
}

inline void tfidf_terms_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<TfidfTermsBackwardArgs>(any);
  const TfidfTermsBackwardParams params = {
      slot_params(args.grouped.group_count, args.grouped.index_kpool),
      args.grouped.groups,
      args.accesses,
      args.groups_accessed,
      args.position_terms,
      args.cosines,
      args.grad_weights,
      static_cast<float>(args.all_groups + 1),
      args.position_share,
      args.term_rows,
      args.position_rows};
  ip_launch(context, slot_blocks(params.slots), policy_threads, 0,
            tfidf_terms_backward_kernel<policy_threads>, params);
}

inline Work tfidf_terms_backward_work(const OpArgs& any) {
  return declared_tfidf_terms_backward(the_backward_args<TfidfTermsBackwardArgs>(any));
}

extern const Kernel tfidf_terms_backward;
const Kernel tfidf_terms_backward = {"tfidf_terms_backward", INDEXPOOL_TARGET_NAME,
                                     tfidf_terms_backward_unsupported, tfidf_terms_backward_launch,
                                     tfidf_terms_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
