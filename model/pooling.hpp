// Operands of one pooling operation, whatever the policy: groups of vectors, and what the weights
// are made of. G groups of m = index_kpool vectors of D channels; R rows of vectors.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "indexpool/model/policy.hpp"
#include "indexpool/model/tensor.hpp"

namespace indexpool {

// Vector i of a group is row first_row + offsets[i]; the first `absent` of them do not exist
// (weight 0, never read). `weight_set` selects the row of pool weights.
struct alignas(16) VectorGroup {
  std::int64_t first_row = 0;
  std::int32_t weight_set = 0;
  std::int32_t absent = 0;
  bool operator==(const VectorGroup&) const = default;
};

// Weights that come from outside: plain, mean, last, composite in its first stage.
struct GivenWeights {
  Tensor pool_weights;  // [sets, m] f32
};
// composite: w = softmax over i of pool_matrix[set, i]. Sets are heads times outputs.
struct RoleMatrix {
  Tensor pool_matrix;  // [sets, m] f32
};
// additive: w_i = alpha exp(-(d_i / sigma)^2 / 2) + beta content_i + gamma exp(-a_i / tau), with
// content_i = (1 + cos(q, V_i)) / 2, or cos(q, V_i) itself when `raw_cosine`. The cosine of a zero
// vector is 0.
struct AdditiveTerms {
  Tensor queries;    // [G, D] storage dtype: what the group is pooled for
  Tensor distances;  // [G, m] f32, tokens between query and vector
  Tensor ages;       // [G, m] f32, steps since the vector was last used
  float alpha = 0.5f, beta = 0.3f, gamma = 0.2f;  // as article B recommends
  float sigma = 2, tau = 16;  // tokens, steps: our choice, the article gives none
  bool raw_cosine = false;
};
// gated: w_i = sigmoid(gate_weight[head] . [h_t; V_i] + gate_bias[head]); group g belongs to token
// g / heads and head g % heads.
struct GateOperands {
  Tensor hidden_states;  // [T, X] storage dtype, X a multiple of 16
  Tensor gate_weight;    // [heads, X + D] storage dtype
  Tensor gate_bias;      // [heads] f32
};
// tfidf: w_i = mix[0] tf_i idf_i + mix[1] position_i + mix[2] (1 + cos(q, V_i)) / 2, with
// tf_i = accesses_i / sum of the group's (0 when there is none) and
// idf_i = log((1 + G_all) / (1 + groups_accessed_i)) + 1.
struct AccessTerms {
  Tensor queries;               // [G, D] storage dtype
  Tensor accesses;              // [G, m] i32, at most 2^24
  Tensor groups_accessed;       // [G, m] i32: groups in which the vector's token was accessed
  Tensor position_terms;        // [m] f32, not negative
  std::int64_t all_groups = 0;  // G_all
  float mix[3] = {1.0f / 3, 1.0f / 3, 1.0f / 3};  // our choice, article D gives none
};
// kpool, csa: w_ic = softmax over the present i of scores[row of V_i, c] + position_bias[i, c].
struct ChannelScores {
  Tensor gate_scores;    // [R, D] storage dtype
  Tensor position_bias;  // [m, D] f32
};
// block_max: no weights.
struct NoWeights {};
using WeightOperands = std::variant<GivenWeights, RoleMatrix, AdditiveTerms, GateOperands,
                                    AccessTerms, ChannelScores, NoWeights>;

// What csa does to the pooled vector before it is stored: C norm_weight / sqrt(mean C^2 + eps),
// then a rotation of neighbouring pairs of the trailing `rope_dims` channels.
struct NormRope {
  Tensor norm_weight;  // [D] f32
  float eps = 1e-6f;
  std::int64_t rope_dims = 0;
  Tensor rope;  // [G, rope_dims] f32: cosine and sine of each pair
};

struct PoolingInputs {
  std::string policy;
  NumericMode mode;
  std::int64_t index_kpool = 4, head_dim = 128, heads = 1;
  std::vector<VectorGroup> groups;
  std::vector<std::int64_t> offsets;  // [m]
  Tensor vectors;                     // [R, D] storage dtype
  WeightOperands weights;
  NormRope norm_rope;  // csa only

  std::int64_t group_count() const { return static_cast<std::int64_t>(groups.size()); }
  bool per_channel() const { return std::holds_alternative<ChannelScores>(weights); }
};
// Rows of pool weights: of given and role weights as many as their operand has, else one per group.
std::int64_t weight_sets(const PoolingInputs& inputs);
// Shapes, dtypes, rows in range: ConfigError naming the operand.
void validate(const PoolingInputs& inputs);

// block_max: the largest of each `block` scores of a row. scores [rows, tokens] f32, NaN never
// wins; -inf where a block has only NaN. Result [rows, ceil(tokens / block)].
struct BlockMaxInputs {
  Tensor scores;
  std::int64_t block = 128;
};

}  // namespace indexpool
