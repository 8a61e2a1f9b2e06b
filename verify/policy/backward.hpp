// The backward pass of a learnable form through its kernels, each step judged from what the step
// before stored.
#pragma once

#include <string>
#include <vector>

#include "indexpool/verify/policy/policy.hpp"
#include "indexpool/verify/problem_judge.hpp"

namespace indexpool::verify::policy {

// Host values of each gradient; empty where the form has none.
struct BackwardOutput {
  std::vector<float> held_vectors;    // [G, m, D], with the weights held fixed
  std::vector<float> slot_weights;    // [G, m] or [G, m, D]: of each group's own use
  std::vector<float> pool_weights;    // of the weights as stored: summed over a set's groups
  std::vector<float> norm_rows;       // [G, D]
  std::vector<float> norm_weight;     // [D]
  std::vector<float> pool_matrix;     // [sets, m], composite
  std::vector<float> gate_scores;     // [G, m, D] by slot, kpool and csa
  std::vector<float> position_bias;   // [m, D], kpool and csa
  std::vector<float> vectors;         // [G, m, D]: held, and through gate or cosine
  std::vector<float> hidden_states;   // [T, X], gated
  std::vector<float> gate_vectors;    // [heads, D], gated: gate_weight[:, X:]
  std::vector<float> gate_hidden;     // [heads, X], gated: gate_weight[:, :X]
  std::vector<float> gate_bias;       // [heads], gated
  std::vector<float> queries;         // [G, D], additive and tfidf
  std::vector<float> cosines;         // [G, m], additive and tfidf: made again on the way
  std::vector<float> term_rows;       // [rows, 5] or [rows, 3]: by groups_per_term_row groups
  std::vector<float> terms;           // [5] or [3], additive and tfidf: the scalars of the mixture
  std::vector<float> position_rows;   // [G, m], tfidf
  std::vector<float> position_terms;  // [m], tfidf
  OpRun run;
  std::string guards;
};
// From stored weights and grad_pooled [G, D]; `clip`: weight gradients into [-1, 1] once summed.
BackwardOutput run_backward(StageContext& context, const PoolingInputs& inputs,
                            const std::vector<float>& pool_weights,
                            const std::vector<float>& grad_pooled, bool clip);

// Gradients of pooled vectors from the problem's seed, N(0, 1) with an outlier here and there.
std::vector<float> make_grad_pooled(const Problem& problem, const PoolingInputs& inputs);

// "bound_<gradient>" for each gradient that the form has.
std::vector<Check> check_gradients(const PoolingInputs& inputs,
                                   const std::vector<float>& pool_weights,
                                   const std::vector<float>& grad_pooled,
                                   const BackwardOutput& found);
// "clip": weight gradients inside [-1, 1] keep their bits, others are exactly 1 or -1.
Check check_clipping(const BackwardOutput& found, const BackwardOutput& clipped);

// One Record of Op::pool_backward; nothing where the form is not learnable.
void judge_backward(ProblemJudge& judge, const PoolingInputs& inputs,
                    const std::vector<float>& pool_weights);

}  // namespace indexpool::verify::policy
