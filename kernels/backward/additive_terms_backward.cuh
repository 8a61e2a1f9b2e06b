// additive_terms_backward: what the scalars of additive weights get from the weights' gradients b.
//
//   term_rows[warp] = sum over the warp's groups g and their i of
//     b (position, content, age, alpha position x^2 / sigma, gamma age (a / tau) / tau)
//   x = d / sigma, position = exp(-x^2 / 2), age = exp(-a / tau), content = (1 + cos) / 2 or cos
//
// Columns: alpha, beta, gamma, sigma, tau. Where an exponential is 0 so is its derivative. The
// operations in between are those of additive_weights.cuh, in its order.
//
// distances, ages, cosines, grad_weights [G, m], term_rows [term_row_count, 5] f32. A lane has one
// slot (terms.cuh). 16 m bytes in per group, 20 out per warp.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/backward/checks.hpp"
#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/terms.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct AdditiveTermsBackwardParams {
  SlotParams slots;
  const float* distances;
  const float* ages;
  const float* cosines;
  const float* grad_weights;
  float alpha, gamma, sigma, tau;
  bool raw_cosine;
  float* term_rows;
};

IP_DEVICE void additive_slot(const AdditiveTermsBackwardParams& p, std::int64_t at,
                             float (&terms)[additive_terms]) {
  const float b = ip::load_global(p.grad_weights + at);
  const float x = ip::div(ip::load_global(p.distances + at), p.sigma);
  const float steps = ip::div(ip::load_global(p.ages + at), p.tau);
  const float cos = ip::load_global(p.cosines + at);
  const float square = ip::mul(x, x);
  const float position = exp_f32(ip::mul(square, -0.5f)), age = exp_f32(-steps);
  const float spread = position > 0 ? ip::div(ip::mul(position, square), p.sigma) : 0.0f;
  const float decay = age > 0 ? ip::div(ip::mul(age, steps), p.tau) : 0.0f;
  terms[0] = ip::mul(b, position);
  terms[1] = ip::mul(b, p.raw_cosine ? cos : ip::mul(ip::add(1.0f, cos), 0.5f));
  terms[2] = ip::mul(b, age);
  terms[3] = ip::mul(b, ip::mul(p.alpha, spread));
  terms[4] = ip::mul(b, ip::mul(p.gamma, decay));
}

template <int Threads>
IP_KERNEL(Threads, role_blocks_per_sm)
void additive_terms_backward_kernel(AdditiveTermsBackwardParams p) {
  const SlotPlace place = slot_place<Threads>(p.slots);
  if (!place.warp_active) return;
  float terms[additive_terms] = {};
  if (place.active) additive_slot(p, place.at, terms);
  store_term_sums(terms, p.term_rows, place.warp);
}

inline std::optional<std::string> additive_terms_backward_unsupported(const OpArgs& any) {
  const auto* args = backward_args<AdditiveTermsBackwardArgs>(any);
  if (args == nullptr) return "it goes back to the scalars of additive weights";
  return bad_additive_terms_backward(*args);
}

inline void additive_terms_backward_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_backward_args<AdditiveTermsBackwardArgs>(any);
  const AdditiveTermsBackwardParams params = {slot_params(args.group_count, args.index_kpool),
                                              args.distances,
                                              args.ages,
                                              args.cosines,
                                              args.grad_weights,
                                              args.alpha,
                                              args.gamma,
                                              args.sigma,
                                              args.tau,
                                              args.raw_cosine,
                                              args.term_rows};
  ip_launch(context, slot_blocks(params.slots), policy_threads, 0,
            additive_terms_backward_kernel<policy_threads>, params);
}

inline Work additive_terms_backward_work(const OpArgs& any) {
  return declared_additive_terms_backward(the_backward_args<AdditiveTermsBackwardArgs>(any));
}

extern const Kernel additive_terms_backward;
const Kernel additive_terms_backward = {
    "additive_terms_backward", INDEXPOOL_TARGET_NAME, additive_terms_backward_unsupported,
    additive_terms_backward_launch, additive_terms_backward_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
