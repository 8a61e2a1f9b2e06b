// Operands of the attention around the pooling: the linear and the sparse half of a hybrid layer,
// the gate that mixes them, attention over composite vectors, and the feedback of attention into
// the pooling. The formulas here are the specification; everything between stored operands is f32.
#pragma once

#include <cstdint>

#include "indexpool/model/pooling.hpp"
#include "indexpool/model/tensor.hpp"

namespace indexpool {

// Linear attention by the gated delta rule, as Kimi delta attention ships in GLM-5.3-Flash. T
// tokens of one sequence, H heads of K key and V value channels. Per head, over the tokens t in
// order, with q, k = x / sqrt(x . x + eps) and the state S [K, V]:
//   S = diag(exp(log_decay_t)) S;  u = beta_t (v_t - S^T k_t);  S = S + k_t u^T;
//   outputs_t = scale S^T q_t
struct LinearAttentionInputs {
  Tensor queries, keys;                // [T, H, K] storage dtype
  Tensor values;                       // [T, H, V] storage dtype
  Tensor log_decay;                    // [T, H, K] f32, lowest_log_decay to 0
  Tensor beta;                         // [T, H] f32, 0 to 1
  Tensor state;                        // [H, K, V] f32, before the first token
  float scale = 0.08838834764831845f;  // 128^-0.5
  float eps = 1e-6f;
};
// exp of it is a normal binary32; the safe gate stays above -5.
inline constexpr double lowest_log_decay = -80;
void validate(const LinearAttentionInputs& inputs);  // ConfigError naming the operand

// The safe gate: log_decay = -5 sigmoid(exp(a_log) (features + dt_bias)), [T, H, K] f32.
struct SafeGateInputs {
  Tensor features;  // [T, H, K] storage dtype
  Tensor a_log;     // [H] f32, at most 20
  Tensor dt_bias;   // [H, K] f32
};
inline constexpr float safe_gate_floor = -5;
void validate(const SafeGateInputs& inputs);

// Attention over selected tokens. N queries of H heads of D channels; L tokens with Hk key heads,
// Hk a divisor of H; head h reads key head h Hk / H. Over the tokens j of a query's selection:
//   outputs = sum_j exp(scale q . k_j) v_j / sum_j exp(scale q . k_j);  0 where nothing is
//   selected.
struct SparseAttentionInputs {
  Tensor queries;    // [N, H, D] storage dtype
  Tensor keys;       // [L, Hk, D] storage dtype
  Tensor values;     // [L, Hk, V] storage dtype
  Tensor selection;  // [N, W] i32 tokens, each at most once in a row, -1: unused
  float scale = 1;
};
void validate(const SparseAttentionInputs& inputs);

// The gate that mixes two branches: outputs = g a + (1 - g) b with g = sigmoid(gate_logits), one
// gate per token and head. From |gate_logits| = gate_saturation on, g is exactly 1 or 0 and the
// result is a or b bit for bit, whatever the other branch holds.
struct GateFusionInputs {
  Tensor gate_logits;  // [N, H] f32
  Tensor a, b;         // [N, H, V] f32
};
// exp(-104) is below half of the smallest binary32, exp(104) above the largest.
inline constexpr float gate_saturation = 104;
void validate(const GateFusionInputs& inputs);

// Attention over composite vectors (article A): per head, Cq_t = W_q C_t, Ck_t = W_k C_t,
//   outputs_t = sum_(s <= t) p_ts v_s,  p_t = softmax over s <= t of Cq_t . Ck_s / sqrt(d)
struct CompositeAttentionInputs {
  Tensor composites;                // [T, H, d] storage dtype, as pooled
  Tensor query_weight, key_weight;  // W_q, W_k [H, d, d] storage dtype; rows are outputs
  Tensor values;                    // [T, H, d] storage dtype: the original ones
};
void validate(const CompositeAttentionInputs& inputs);

// Feedback (article D), as we read it. One step's attention mass of every pooled vector is compared
// with the mean of those attended to: a vector is accessed when mass * attended > 1, attended being
// the number of vectors with any mass. Its access count grows by one. groups_accessed of a vector
// becomes the number of groups that hold an accessed vector (ever) of the same token. The tf-idf
// weights of the next step follow from both.
struct FeedbackInputs {
  Tensor attention_mass;  // [G, m] f32, not negative; sums to 1 over what was attended to
  Tensor tokens;          // [G, m] i32: the token a vector belongs to
};
void validate(const FeedbackInputs& inputs, const AccessTerms& terms);
// Access counts stay exact in binary32.
inline constexpr std::int32_t most_accesses = 1 << 24;

}  // namespace indexpool
