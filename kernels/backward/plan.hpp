// From the operands and stored weights of a pooling operation, already in a target's memory, to the
// launches of its backward pass. Pure: nothing is allocated, read or run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/policy/plan.hpp"
#include "indexpool/model/pooling.hpp"

namespace indexpool::kernels {

// Rows to add up, in levels: each adds short segments of the level below (of the rows themselves,
// first), the last has one segment for each sum. Always the same tree.
struct SumLevel {
  std::vector<std::int32_t> rows;   // empty: the rows below, in order
  std::vector<std::int64_t> first;  // [segments + 1]
  std::int64_t segments() const { return static_cast<std::int64_t>(first.size()) - 1; }
};
// Row j of `sum_of_row` belongs to sum sum_of_row[j] < sums. InternalError outside that range.
std::vector<SumLevel> sum_levels(std::span<const std::int32_t> sum_of_row, std::int64_t sums,
                                 std::int64_t width);
// The level as arguments; `rows` and `first` are its lists on the target. Refers to `level`.
SumRowsArgs sum_launch(const SumLevel& level, const std::int32_t* rows, const std::int64_t* first,
                       std::int64_t width, const float* values, float* sums);

// Where gradients lie, in the shapes of backward_args.hpp. Only what the policy has is used.
struct PlacedBackward {
  PlacedPooling forward;  // vectors, groups, pool_weights and what the weights are made of
  const float* grad_pooled = nullptr;   // [G, D]
  float* held_vectors = nullptr;        // [G, m, D], with the weights held fixed
  float* slot_weights = nullptr;        // [G, m] or [G, m, D]: of each group's own weights
  float* norm_rows = nullptr;           // [G, D]
  const float* grad_weights = nullptr;  // of the weights as stored: summed over a set's groups
  float* grad_operand = nullptr;        // pool_matrix, or gate scores by slot
  float* grad_vectors = nullptr;        // [G, m, D]: held, and through gates or cosines
  float* gate_rows = nullptr;           // [G, D], gated
  float* grad_hidden_gates = nullptr;   // [T, heads], gated
  float* grad_hidden_states = nullptr;  // [T, X], gated
  float* hidden_gate_rows = nullptr;    // [ceil(T / 16), heads, X], gated
  float* grad_queries = nullptr;        // [G, D], additive and tfidf
  float* cosines = nullptr;             // [G, m], additive and tfidf
  float* term_rows = nullptr;           // [weight_term_rows, weight_terms], additive and tfidf
  float* position_rows = nullptr;       // [G, m], tfidf
};

// From pooled vectors to vectors and each group's weights. `clip` only where no other group has the
// same weights; otherwise their sum is to be clipped.
BackwardArgs to_weights_launch(const PoolingInputs& inputs, const PlacedBackward& placed,
                               bool clip);
// Scalars that weights are made of, besides position terms: 5 of additive (alpha, beta, gamma,
// sigma, tau), 3 of tfidf (mix), else 0; and in how many rows their gradients come.
std::int64_t weight_terms(const PoolingInputs& inputs);
std::int64_t weight_term_rows(const PoolingInputs& inputs);
std::int64_t groups_per_term_row(const PoolingInputs& inputs);
// From the stored weights' gradients to what they are made of: role and channel softmax, gates,
// cosines and their mixture. None for other rules.
std::vector<OpArgs> through_weights_launches(const PoolingInputs& inputs,
                                             const PlacedBackward& placed);
// Whether groups share rows of weights, whose gradients must be added up.
bool shares_weights(const PoolingInputs& inputs);

}  // namespace indexpool::kernels
