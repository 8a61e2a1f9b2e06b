// The backward pass of the published forms of pooling, with enclosures: what implementations in
// binary32 may answer from stored operands and stored f32 weights, products and sums in any order,
// fused or not. Gradients lie by slot: [G, m, ...] has vector i of group g at g m + i, absent
// vectors have gradient 0. Formulas: training/gradients.hpp, which is written apart from this.
//
// Every step starts from what the step before stored, taken as exact. Long sums are judged by short
// ones first (row_sums then has few addends): the bound of n addends in any order grows as n^2.
// Open where an intermediate may leave the range of binary32, and where what was stored is not
// finite.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/model/pooling.hpp"
#include "indexpool/reference/bounded.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// Of sum(grad_pooled * pooled) with the stored weights held fixed; grad_pooled [G, D].
struct HeldGradients {
  Bounded vectors;       // [G, m, D]
  Bounded pool_weights;  // [G, m] or [G, m, D]: of each group's own use of its weights
  Bounded norm_weight;   // [G, D] of csa: of each group's own use; else empty
};
// ConfigError for block_max, for sizes that do not fit, for gradients that are not numbers.
HeldGradients held_gradients(const PoolingInputs& inputs, std::span<const float> stored_weights,
                             std::span<const float> grad_pooled,
                             Precision precision = Precision::binary64);

// [sums, width]: row j of `values` [rows, width] is added to sum sum_of_row[j].
Bounded row_sums(std::span<const float> values, std::int64_t width,
                 std::span<const std::int32_t> sum_of_row, std::int64_t sums,
                 Precision precision = Precision::binary64);

// Back through a softmax over m elements `stride` apart: w_i (b_i - sum_j w_j b_j), w and b [rows,
// m, stride]. Stride 1 for roles, D for channels.
Bounded through_softmax(std::span<const float> stored_weights, std::span<const float> grad_weights,
                        std::int64_t m, std::int64_t stride,
                        Precision precision = Precision::binary64);

// Back through the sigmoid of gated pooling, dz = b w (1 - w), b [G, m]. `held_vectors` [G, m, D]
// is what reaches the vectors already.
struct GateGradients {
  Bounded vectors;        // [G, m, D]: held, and through the gate
  Bounded hidden_states;  // [T, X]
  Bounded gate_weight;    // [heads, X + D]
  Bounded gate_bias;      // [heads]
};
GateGradients through_gates(const PoolingInputs& inputs, std::span<const float> stored_weights,
                            std::span<const float> grad_weights,
                            std::span<const float> held_vectors,
                            Precision precision = Precision::binary64);

// Back through the cosine that additive and tfidf weights take a share of; grad_weights [G, m],
// held_vectors as above. A zero vector's cosine is 0 and has no gradient. ConfigError for other
// rules.
struct CosineGradients {
  Bounded vectors;  // [G, m, D]: held, and through the cosine
  Bounded queries;  // [G, D]
  Bounded cosines;  // [G, m]
};
CosineGradients through_cosines(const PoolingInputs& inputs, std::span<const float> grad_weights,
                                std::span<const float> held_vectors,
                                Precision precision = Precision::binary64);
// And to the scalars that mix the terms, from stored cosines [G, m]: added over groups_per_row
// neighbouring groups at a time, and slot by slot where each place has a scalar of its own.
struct WeightTermGradients {
  Bounded terms;           // [rows, 5] of additive: alpha, beta, gamma, sigma, tau; [rows, 3]: mix
  Bounded position_terms;  // [G, m], tfidf
};
WeightTermGradients through_terms(const PoolingInputs& inputs, std::span<const float> grad_weights,
                                  std::span<const float> cosines, std::int64_t groups_per_row,
                                  Precision precision = Precision::binary64);

}  // namespace indexpool::reference
