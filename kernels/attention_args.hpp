// Arguments of the kernels of the attention around the pooling (model/attention.hpp has the
// formulas). Pointers are the target's global memory, 16-byte aligned.
#pragma once

#include <cstdint>
#include <variant>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

// log_decay = -5 sigmoid(exp(a_log) (features + dt_bias)).
struct SafeGateArgs {
  const void* features = nullptr;  // [N, H, K] storage dtype
  DType storage = DType::bf16;     // f32, f16, bf16
  const float* a_log = nullptr;    // [H]
  const float* dt_bias = nullptr;  // [H, K]
  std::int64_t rows = 0;
  std::int32_t heads = 1, key_dim = 128;  // key_dim a multiple of 8
  float* log_decay = nullptr;             // [N, H, K]
};

// One sequence's tokens in a launch, in order, and where its states lie.
struct alignas(16) LinearSequence {
  std::int64_t first_row = 0;
  std::int32_t tokens = 0;
  std::int32_t state = 0;  // of states [.][H, K, V]
  bool operator==(const LinearSequence&) const = default;
};

// The gated delta rule over the tokens of S sequences; states are read and replaced.
struct LinearAttentionArgs {
  const void* queries = nullptr;              // [N, H, K]
  const void* keys = nullptr;                 // [N, H, K]
  const void* values = nullptr;               // [N, H, V]
  DType storage = DType::bf16;                // f32, f16, bf16
  const float* log_decay = nullptr;           // [N, H, K]
  const float* beta = nullptr;                // [N, H]
  const LinearSequence* sequences = nullptr;  // [S], each with states of its own
  std::int64_t sequence_count = 0;
  std::int32_t heads = 1, key_dim = 128, value_dim = 128;  // dims 32, 64 or 128
  float scale = 0.08838834764831845f, eps = 1e-6f;
  float* states = nullptr;                         // [.][H, K, V]
  float* outputs = nullptr;                        // [N, H, V]
  const LinearSequence* host_sequences = nullptr;  // the same on the host, for the declared traffic
};
// Token by token, or in chunks of linear_chunk_tokens.
struct LinearStepArgs {
  LinearAttentionArgs linear;
};
struct LinearChunkArgs {
  LinearAttentionArgs linear;
};
inline constexpr int linear_chunk_tokens = 16;

// Softmax over the selected tokens of each query; zeros where nothing is selected.
struct SparseAttentionArgs {
  const void* queries = nullptr;            // [N, H, D]
  const void* keys = nullptr;               // [L, Hk, D]
  const void* values = nullptr;             // [L, Hk, V]
  DType storage = DType::bf16;              // f32, f16, bf16
  const std::int32_t* selection = nullptr;  // [N, width] tokens, distinct in a row, -1: unused
  std::int64_t rows = 0, tokens = 0;
  std::int32_t heads = 1, key_heads = 1;         // Hk divides H
  std::int32_t head_dim = 128, value_dim = 128;  // 32, 64 or 128
  std::int32_t width = 2051;                     // 1 to most_selected
  float scale = 1;
  float* outputs = nullptr;                      // [N, H, V]
  const std::int32_t* host_selection = nullptr;  // the same on the host, for the declared traffic
};
inline constexpr std::int32_t most_selected = 8192;  // scores of a row stay in shared memory

// outputs = g a + (1 - g) b, g = sigmoid(gate_logits).
struct GateFusionArgs {
  const float* gate_logits = nullptr;  // [N, H]
  const float* a = nullptr;            // [N, H, V]
  const float* b = nullptr;            // [N, H, V]
  std::int64_t rows = 0;
  std::int32_t heads = 1, value_dim = 128;  // value_dim a multiple of 4
  float* outputs = nullptr;                 // [N, H, V]
};

// Cq = W_q C and Ck = W_k C of every token and head: what composite attention scores with.
struct DecompressArgs {
  const void* composites = nullptr;    // [T, H, D]
  const void* query_weight = nullptr;  // [H, D, D], rows are outputs
  const void* key_weight = nullptr;    // [H, D, D]
  DType storage = DType::bf16;         // f32, f16, bf16
  std::int64_t tokens = 0;
  std::int32_t heads = 1, head_dim = 128;  // head_dim 32, 64 or 128
  float* queries = nullptr;                // [T, H, D]
  float* keys = nullptr;                   // [T, H, D]
};

// Causal softmax(scale Cq Ck^T) V with the original values, one sequence.
struct CompositeAttentionArgs {
  const float* queries = nullptr;  // [T, H, D] as decompressed
  const float* keys = nullptr;     // [T, H, D]
  const void* values = nullptr;    // [T, H, D]
  DType storage = DType::bf16;     // of the values: f32, f16, bf16
  std::int64_t tokens = 0;
  std::int32_t heads = 1, head_dim = 128;  // head_dim 32, 64 or 128
  float scale = 0.08838834764831845f;      // D^-0.5
  float* outputs = nullptr;                // [T, H, D]
};

// How many vectors of a step have any attention mass: shares of the count, one per block of the
// launch, for attention_feedback to add up. A slot is a vector's place in [G, m].
struct CountAttendedArgs {
  const float* attention_mass = nullptr;  // [slots]
  std::int64_t slots = 0;                 // G m
  std::int32_t* counts = nullptr;         // [attended_counts(slots)]
};
inline constexpr std::int64_t slots_per_count = 1024, most_attended_counts = 256;
constexpr std::int64_t attended_counts(std::int64_t slots) {
  const std::int64_t blocks = (slots + slots_per_count - 1) / slots_per_count;
  return blocks < most_attended_counts ? blocks : most_attended_counts;
}

// The access counts after a step, token by token (attention/token_slots.hpp makes the lists): those
// of token k are token_slots[first_slot[k]] up to, not including, [first_slot[k + 1]], ascending,
// so that slots of one group are neighbours. Every slot belongs to one token.
struct AttentionFeedbackArgs {
  const float* attention_mass = nullptr;      // [slots]
  const std::int32_t* counts = nullptr;       // [attended_counts(slots)]
  const std::int32_t* accesses = nullptr;     // [slots], 0 to most_accesses
  const std::int32_t* token_slots = nullptr;  // [slots]
  const std::int32_t* first_slot = nullptr;   // [tokens + 1]
  std::int64_t slots = 0;                     // below 2^31
  std::int64_t tokens = 0;
  std::int32_t index_kpool = 4;             // m: slot / m is the group
  std::int32_t* next_accesses = nullptr;    // [slots]; may be `accesses` itself
  std::int32_t* groups_accessed = nullptr;  // [slots]
  // The same on the host, for the declared traffic. Null: every token has slots / tokens
  // neighbouring ones.
  const std::int32_t* host_token_slots = nullptr;
  const std::int32_t* host_first_slot = nullptr;
};

using AttentionArgs =
    std::variant<SafeGateArgs, LinearStepArgs, LinearChunkArgs, SparseAttentionArgs, GateFusionArgs,
                 DecompressArgs, CompositeAttentionArgs, CountAttendedArgs, AttentionFeedbackArgs>;

}  // namespace indexpool::kernels
