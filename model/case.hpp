// A case: everything one run of the indexer needs, as tensors, with what a public implementation
// answered if that is known. Generated from a Problem or read from a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/tensor.hpp"

namespace indexpool {

// The real tokens of one batch row: padded position first_key + i holds token i, i < length.
// length is 0 for a row that is all padding.
struct Sequence {
  std::int64_t first_key = 0;
  std::int64_t length = 0;
  std::int64_t first_row = 0;  // sum of the lengths before it: where its tokens start in `keys`
};

// Inputs of the indexer after the projections, padding removed, sequences back to back.
// N = sum of lengths, D = index_head_dim, H = index_n_heads.
struct IndexerInputs {
  IndexerConfig config;
  NumericMode mode;
  std::vector<Sequence> sequences;
  Tensor keys;             // [N, D] storage dtype: LayerNorm(W_k x)
  Tensor gate_scores;      // [N, D] storage dtype
  Tensor ape;              // [index_kpool, D] f32: position bias
  Tensor queries;          // [N, H, D] storage dtype, before rotation
  Tensor head_weights;     // [N, H] f32
  double logit_scale = 1;  // logits = sum_h (head_weights * logit_scale) * relu(q . k)

  std::int64_t rows() const { return keys.empty() ? 0 : keys.dim(0); }
};

// Inputs of the projections. B x T padded; X = hidden size, R = q_lora_rank.
struct ProjectionInputs {
  Tensor hidden_states;  // [B, T, X]
  Tensor q_resid;        // [B, T, R]
  Tensor wq_b;           // [H * D, R]
  Tensor wk;             // [D, X]
  Tensor k_norm_weight;  // [D]
  Tensor k_norm_bias;    // [D]
  Tensor weights_proj;   // [H, X]
  Tensor gate_weight;    // [D, X]: index_kpool_compress_gate
  double k_norm_eps = 1e-6;
  bool present() const { return !hidden_states.empty(); }
};

struct Case {
  std::string name;
  std::string source;
  IndexerInputs inputs;
  ProjectionInputs projections;  // may be absent
  std::int64_t batch = 0, padded_length = 0;
  std::int64_t prefill = 0;  // padded positions that arrive at once; the rest come one by one
  // Outputs of the implementation the case came from, padding removed as in `inputs`; may be empty.
  // "pooled" [pools, D], "pool_rows" [pools, D + 4] u8, "q_codes" [N, H, D], "q_scales" [N, H],
  // "logits" [N, P] (pool p of the row's own sequence in column p), "selection" [N, width] i32
  // (padded token positions, -1 unused).
  std::map<std::string, Tensor> expected;
};

// Reads a case of the golden format (tests/golden/README.md): projection cases and FP8-stage cases,
// and what `indexpool export` writes (case_indexer.hpp), any shape. Throws ConfigError for a
// missing tensor, a wrong dtype or shape, an unknown key in the case's JSON or among its tensors,
// NaN or infinity in inputs (padding aside, it is never used; a gate score may be -inf), a mask
// with holes, index_kpool not dividing index_topk, zero tokens, sizes whose product overflows.
Case read_case(const std::filesystem::path& path);

}  // namespace indexpool
