// The attention around the pooling, with enclosures (model/attention.hpp has the formulas): what
// implementations in binary32, from the stored operands, may answer. Nothing is rounded to narrower
// types in between.
#pragma once

#include <cstdint>

#include "indexpool/model/attention.hpp"
#include "indexpool/reference/bounded.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

struct LinearAttention {
  Bounded outputs;  // [T, H, V]
  Bounded state;    // [H, K, V] after the last token
};
// Token by token. An implementation may sum in any order, with or without fma, and read the output
// from the new state or from the decayed one plus (k . q) u. A call that goes on from another's
// state is covered by the enclosure of the whole, since states are f32.
LinearAttention linear_attention(const LinearAttentionInputs& inputs,
                                 Precision precision = Precision::binary64);
// Chunks of `chunk` tokens, the last one shorter: the WY form. Within a chunk, with decays
// accumulated to G_i and F_ij = exp(G_i - G_j), j <= i:
//   A_ij = beta_i sum_c k_ic k_jc F_ijc (j < i),  U = (I + A)^-1 diag(beta) (V - (K F_i0) S)
//   outputs_i = scale ((q_i F_i0) S + sum_(j <= i) (sum_c q_ic k_jc F_ijc) U_j)
//   S = diag(F_n0) S + sum_j (k_j F_nj) U_j^T
// An implementation may substitute forward or multiply by an explicit inverse that it made by
// substitution, accumulate decays in sequence or by a scan, and make F_ij of two exponentials of
// the same sign.
LinearAttention linear_attention_chunked(const LinearAttentionInputs& inputs,
                                         std::int64_t chunk = 64,
                                         Precision precision = Precision::binary64);

// log_decay [T, H, K].
Bounded safe_gate(const SafeGateInputs& inputs, Precision precision = Precision::binary64);

// [N, H, V]. An implementation may go through the tokens in two passes, or in one that rescales by
// tiles of at least `online_tile` tokens.
inline constexpr std::int64_t online_tile = 32;
Bounded sparse_attention(const SparseAttentionInputs& inputs,
                         Precision precision = Precision::binary64);

// [N, H, V]. Exact where the gate is saturated.
Bounded gate_fusion(const GateFusionInputs& inputs, Precision precision = Precision::binary64);

// [T, H, d].
Bounded composite_attention(const CompositeAttentionInputs& inputs,
                            Precision precision = Precision::binary64);

// The counts after a step, new tensors; everything else as in `terms`. Exact.
AccessTerms attention_feedback(const FeedbackInputs& inputs, const AccessTerms& terms);

}  // namespace indexpool::reference
