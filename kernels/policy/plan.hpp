// From the operands of a pooling operation (model/pooling.hpp), already in a target's memory, to
// the launches that compute it. Pure: nothing is allocated, read or run.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/pooling.hpp"

namespace indexpool::kernels {

// Where operands and results lie, in the shapes of PoolingInputs. Only what the policy has is used.
struct PlacedPooling {
  const void* vectors = nullptr;                  // [R, D]
  const VectorGroup* groups = nullptr;            // [G]
  const float* pool_matrix = nullptr;             // RoleMatrix
  const void* queries = nullptr;                  // AdditiveTerms, AccessTerms
  const float* distances = nullptr;               // AdditiveTerms
  const float* ages = nullptr;                    // AdditiveTerms
  const void* hidden_states = nullptr;            // GateOperands
  const void* gate_weight = nullptr;              // GateOperands
  const float* gate_bias = nullptr;               // GateOperands
  const std::int32_t* accesses = nullptr;         // AccessTerms
  const std::int32_t* groups_accessed = nullptr;  // AccessTerms
  const float* position_terms = nullptr;          // AccessTerms
  const void* gate_scores = nullptr;              // ChannelScores
  const float* position_bias = nullptr;           // ChannelScores
  const float* norm_weight = nullptr;             // NormRope
  const float* rope = nullptr;                    // NormRope
  float* hidden_gates = nullptr;                  // scratch, hidden_gate_count floats
  float* pool_weights = nullptr;  // pool_weight_count floats; GivenWeights: the operand
  std::byte* pooled = nullptr;    // as WeightedPoolArgs
  float* scales = nullptr;
  PoolChecksum* checksums = nullptr;
  std::int32_t* fallbacks = nullptr;
};

// Floats: [sets, m], or [G, m, D] per channel.
std::int64_t pool_weight_count(const PoolingInputs& inputs);
// Floats: [T, heads] for gated weights, else 0.
std::int64_t hidden_gate_count(const PoolingInputs& inputs);

GroupedVectors grouped_vectors(const PoolingInputs& inputs, const PlacedPooling& placed);
// Launches that make `pool_weights`, in order: none for given weights, hidden_gates and
// gated_weights for gated ones, one otherwise. ConfigError for block_max, which has no weights.
std::vector<OpArgs> weight_launches(const PoolingInputs& inputs, const PlacedPooling& placed);
// The launch that pools with them; divides by their sum when the policy does. The launches refer to
// `inputs.groups`.
WeightedPoolArgs pool_launch(const PoolingInputs& inputs, const PlacedPooling& placed);

}  // namespace indexpool::kernels
