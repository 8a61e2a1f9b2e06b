// Arguments of the kernels of the published forms of pooling (model/pooling.hpp has the formulas).
// Pointers are the target's global memory, 32-byte aligned (whole sectors). G groups of m =
// index_kpool vectors. policy/plan.hpp makes the arguments from PoolingInputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "indexpool/model/config.hpp"
#include "indexpool/model/pooling.hpp"

namespace indexpool::kernels {

struct PoolChecksum;

// The vectors of all groups.
struct GroupedVectors {
  const void* vectors = nullptr;        // [R, D]
  DType storage = DType::bf16;          // f32, f16, bf16
  std::int32_t head_dim = 128;          // a power of two, 32 to 2048
  std::int32_t index_kpool = 4;         // 1 to most_pooled_vectors
  const VectorGroup* groups = nullptr;  // [G]
  std::int64_t group_count = 0;
  std::int64_t offsets[most_pooled_vectors] = {};
  // The same on the host, for the declared traffic. Null: consecutive rows, none absent, a row of
  // weights each.
  const VectorGroup* host_groups = nullptr;
};

// pool_weights [sets, m] = softmax of each row.
struct RoleWeightsArgs {
  const float* pool_matrix = nullptr;  // [sets, m]
  std::int64_t sets = 0;
  std::int32_t index_kpool = 4;
  float* pool_weights = nullptr;
};
struct AdditiveWeightsArgs {
  GroupedVectors grouped;
  const void* queries = nullptr;  // [G, D] storage dtype
  const float* distances = nullptr;
  const float* ages = nullptr;
  float alpha = 0.5f, beta = 0.3f, gamma = 0.2f, sigma = 2, tau = 16;
  bool raw_cosine = false;
  float* pool_weights = nullptr;  // [G, m]
};
// hidden_gates[t, head] = hidden_states[t] . gate_weight[head, :X], on tensor cores for 16-bit
// storage.
struct HiddenGatesArgs {
  const void* hidden_states = nullptr;  // [T, X]
  const void* gate_weight = nullptr;    // [heads, X + D]
  DType storage = DType::bf16;
  std::int64_t tokens = 0;
  std::int32_t hidden = 0, head_dim = 128, heads = 1;  // X, D
  float* hidden_gates = nullptr;                       // [T, heads]
};
// pool_weights = sigmoid(hidden_gates + gate_weight[head, X:] . V_i + gate_bias).
struct GatedWeightsArgs {
  GroupedVectors grouped;
  const void* gate_weight = nullptr;
  const float* gate_bias = nullptr;
  const float* hidden_gates = nullptr;
  std::int32_t hidden = 0, heads = 1;
  float* pool_weights = nullptr;  // [G, m]
};
struct TfidfWeightsArgs {
  GroupedVectors grouped;
  const void* queries = nullptr;
  const std::int32_t* accesses = nullptr;
  const std::int32_t* groups_accessed = nullptr;
  const float* position_terms = nullptr;
  std::int64_t all_groups = 0;
  float mix[3] = {};
  float* pool_weights = nullptr;  // [G, m]
};
// Weights of absent vectors are 0.
struct ChannelWeightsArgs {
  GroupedVectors grouped;                // `vectors` is not read
  const void* gate_scores = nullptr;     // [R, D] storage dtype
  const float* position_bias = nullptr;  // [m, D]
  float* pool_weights = nullptr;         // [G, m, D]
};

// pooled = sum_i w_i V_i, over sum_i w_i when `divide` (the mean of the present vectors when
// |sum_i w_i| < 2^-126, counted in `fallbacks`), normed and rotated when norm_weight is set, then
// rounded or quantised. Checksums see it before that rounding, and the codes. Weights are finite.
struct WeightedPoolArgs {
  GroupedVectors grouped;
  NumericMode mode;
  const float* pool_weights = nullptr;  // [sets, m], or [G, m, D] when per_channel
  bool per_channel = false, divide = false;
  const float* norm_weight = nullptr;  // [D]; null: neither norm nor rotation
  float norm_eps = 1e-6f;
  const float* rope = nullptr;  // [G, rope_dims]
  std::int32_t rope_dims = 0;
  std::byte* pooled = nullptr;        // [G, D] codes (quantised) or mode.cache
  float* scales = nullptr;            // [G]; null when not quantised
  PoolChecksum* checksums = nullptr;  // [G]; null: not wanted
  std::int32_t* fallbacks = nullptr;  // [G] 0 or 1; null: not wanted
};

struct BlockMaxArgs {
  const float* scores = nullptr;  // [rows, stride]; up to 3 columns beyond `tokens` are read
  std::int64_t rows = 0, tokens = 0, stride = 0;  // stride a multiple of 4
  std::int32_t block = 128;                       // a multiple of 4 up to 128, or of 128
  float* maxima = nullptr;                        // [rows, ceil(tokens / block)]
};

using PolicyArgs =
    std::variant<RoleWeightsArgs, AdditiveWeightsArgs, HiddenGatesArgs, GatedWeightsArgs,
                 TfidfWeightsArgs, ChannelWeightsArgs, WeightedPoolArgs, BlockMaxArgs>;

}  // namespace indexpool::kernels
