// Arguments of the kernels of the backward pass (reference/training/gradients.hpp has the
// formulas). Gradients are f32 and lie by slot: [G, m, ...] has the place of vector i of group g at
// g m + i, absent vectors get 0. Pointers are the target's global memory, 32-byte aligned.
// backward/plan.hpp makes the arguments.
#pragma once

#include <cstdint>
#include <variant>

#include "indexpool/kernels/policy_args.hpp"

namespace indexpool::kernels {

// From grad_pooled [G, D], with one weight per vector. With s = sum of the group's weights when
// `divide`, else 1; where |s| < 2^-126 the mean was pooled, and weights have no gradient.
//   grad_vectors[g, i] = grad_pooled[g] w_i / s
//   grad_weights[g, i] = grad_pooled[g] . (V_i - pooled) / s, or grad_pooled[g] . V_i
// `clip`: weight gradients into [-1, 1].
struct PoolBackwardArgs {
  GroupedVectors grouped;
  const float* pool_weights = nullptr;  // [sets, m]
  bool divide = false, clip = false;
  const float* grad_pooled = nullptr;  // [G, D]
  float* grad_vectors = nullptr;       // [G, m, D]
  float* grad_weights = nullptr;       // [G, m], not yet summed over the groups of a set
};
// The same with a weight for each channel, and back through csa's rotation and norm first.
struct ChannelPoolBackwardArgs {
  GroupedVectors grouped;
  const float* pool_weights = nullptr;  // [G, m, D]
  bool clip = false;
  const float* norm_weight = nullptr;  // [D]; null: neither norm nor rotation
  float norm_eps = 1e-6f;
  const float* rope = nullptr;  // [G, rope_dims]
  std::int32_t rope_dims = 0;
  const float* grad_pooled = nullptr;  // [G, D]
  float* grad_vectors = nullptr;       // [G, m, D]
  float* grad_weights = nullptr;       // [G, m, D]
  float* grad_norm = nullptr;          // [G, D], to be summed over groups; null without a norm
};

// sums[s] = sum of rows first[s] ... first[s + 1] - 1 of values [R, W], in a fixed order; into
// [-1, 1] when `clip`. Row j is rows[j] where there is such a list.
struct SumRowsArgs {
  const float* values = nullptr;
  const std::int32_t* rows = nullptr;   // null: row j is j
  const std::int64_t* first = nullptr;  // [segments + 1], not descending
  std::int64_t segments = 0;
  std::int32_t width = 0;  // W
  bool clip = false;
  float* sums = nullptr;  // [segments, W]
  // The same on the host, for the declared traffic.
  const std::int32_t* host_rows = nullptr;
  const std::int64_t* host_first = nullptr;
};

// Softmax over i: grad_scores[g, i, c] = w_ic (grad_weights_ic - sum_j w_jc grad_weights_jc).
struct ChannelSoftmaxBackwardArgs {
  std::int64_t group_count = 0;
  std::int32_t index_kpool = 4, head_dim = 128;
  const float* pool_weights = nullptr;  // [G, m, D]
  const float* grad_weights = nullptr;  // [G, m, D]
  float* grad_scores = nullptr;         // [G, m, D]
};
struct RoleSoftmaxBackwardArgs {
  std::int64_t sets = 0;
  std::int32_t index_kpool = 4;
  const float* pool_weights = nullptr;  // [sets, m]
  const float* grad_weights = nullptr;  // [sets, m]
  float* grad_matrix = nullptr;         // [sets, m]
};

// Sigmoid: dz_i = grad_weights_i w_i (1 - w_i), head h = g % heads.
//   grad_vectors[g, i] = held_vectors[g, i] + dz_i gate_weight[h, X:]
//   grad_gate[g] = sum_i dz_i V_i, grad_hidden_gates[g] = sum_i dz_i
struct GateBackwardArgs {
  GroupedVectors grouped;
  const void* gate_weight = nullptr;  // [heads, X + D] storage dtype
  std::int32_t hidden = 0, heads = 1;
  const float* pool_weights = nullptr;  // [G, m]
  const float* grad_weights = nullptr;  // [G, m]
  const float* held_vectors = nullptr;  // [G, m, D]: PoolBackwardArgs::grad_vectors
  float* grad_vectors = nullptr;        // [G, m, D]
  float* grad_gate = nullptr;           // [G, D], to be summed over the groups of a head
  float* grad_hidden_gates = nullptr;   // [T, heads]
};
// grad_hidden_states[t] = sum_h grad_hidden_gates[t, h] gate_weight[h, :X]
struct HiddenStatesBackwardArgs {
  const void* gate_weight = nullptr;
  DType storage = DType::bf16;
  std::int64_t tokens = 0;
  std::int32_t hidden = 0, head_dim = 128, heads = 1;
  const float* grad_hidden_gates = nullptr;  // [T, heads]
  float* grad_hidden_states = nullptr;       // [T, X]
};
// grad_gate[b, h] = sum over the b-th 16 tokens of grad_hidden_gates[t, h] hidden_states[t]
struct HiddenGateBackwardArgs {
  const void* hidden_states = nullptr;  // [T, X]
  DType storage = DType::bf16;
  std::int64_t tokens = 0;
  std::int32_t hidden = 0, heads = 1;
  const float* grad_hidden_gates = nullptr;  // [T, heads]
  float* grad_gate = nullptr;                // [ceil(T / 16), heads, X]
};

// Cosine of query and vector, of which weights take `cosine_share` (beta, half of it, half of
// mix[2]). With b_i = cosine_share grad_weights_i and r_i = 1 / (|q| |V_i|):
//   grad_vectors[g, i] = held_vectors[g, i] + b_i (r_i q - cos_i V_i / |V_i|^2)
//   grad_queries[g] = sum_i b_i (r_i V_i - cos_i q / |q|^2)
// Where a norm is zero the cosine is 0 and has no gradient.
struct CosineBackwardArgs {
  GroupedVectors grouped;
  const void* queries = nullptr;  // [G, D] storage dtype
  float cosine_share = 1;
  const float* grad_weights = nullptr;  // [G, m]
  const float* held_vectors = nullptr;  // [G, m, D]: PoolBackwardArgs::grad_vectors
  float* grad_vectors = nullptr;        // [G, m, D]
  float* grad_queries = nullptr;        // [G, D]
  float* cosines = nullptr;             // [G, m], 0 of absent vectors
};
// What the scalars of additive weights get, w_i = alpha position_i + beta content_i + gamma age_i,
// added over the groups of one warp (groups_per_term_row of them), to be summed over these rows:
//   sum_i grad_weights_i (position_i, content_i, age_i, alpha position_i d_i^2 / sigma^3,
//                         gamma age_i a_i / tau^2)
// grad_weights of absent vectors are 0; distances and ages are numbers there too.
struct AdditiveTermsBackwardArgs {
  std::int64_t group_count = 0;
  std::int32_t index_kpool = 4;
  const float* distances = nullptr;     // [G, m]
  const float* ages = nullptr;          // [G, m]
  const float* cosines = nullptr;       // [G, m]
  const float* grad_weights = nullptr;  // [G, m]
  float alpha = 0, gamma = 0, sigma = 1, tau = 1;
  bool raw_cosine = false;
  float* term_rows = nullptr;  // [rows, 5]: alpha, beta, gamma, sigma, tau
};
// The same of tfidf weights: sum_i grad_weights_i (tf_i idf_i, position_terms_i, (1 + cos_i) / 2),
// and of the position terms themselves:
//   position_rows[g, i] = mix[1] grad_weights_i, to be summed over groups
struct TfidfTermsBackwardArgs {
  GroupedVectors grouped;                         // `vectors` is not read
  const std::int32_t* accesses = nullptr;         // [G, m]
  const std::int32_t* groups_accessed = nullptr;  // [G, m]
  const float* position_terms = nullptr;          // [m]
  const float* cosines = nullptr;                 // [G, m]
  const float* grad_weights = nullptr;            // [G, m]
  std::int64_t all_groups = 0;
  float position_share = 0;        // mix[1]
  float* term_rows = nullptr;      // [rows, 3]: of mix
  float* position_rows = nullptr;  // [G, m]
};

using BackwardArgs =
    std::variant<PoolBackwardArgs, ChannelPoolBackwardArgs, SumRowsArgs, ChannelSoftmaxBackwardArgs,
                 RoleSoftmaxBackwardArgs, GateBackwardArgs, HiddenStatesBackwardArgs,
                 HiddenGateBackwardArgs, CosineBackwardArgs, AdditiveTermsBackwardArgs,
                 TfidfTermsBackwardArgs>;

}  // namespace indexpool::kernels
