// The pooled indexer as shipped in GLM-5.3-Flash, step by step, with enclosures.
//
// Two oracles. Exact: infinite precision from the unquantised inputs; how much pooling and
// quantisation lose. Faithful: from the stored operands, with each rounding step of the numeric
// mode; whether an implementation is right. Computed in binary64 (Eigen), templated on the scalar
// inside, with binary128 for spot checks (`Precision`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/reference/bounded.hpp"

namespace indexpool::reference {

enum class Precision { binary64, binary128 };

// Projections, from hidden states: [N, H, D], [N, D], [N, D], [N, H] over the real tokens.
// k = LayerNorm(W_k x) (weight and bias, eps of the case), gate = W_g x, q = W_qb r, head weights
// W_w x * H^-0.5. Enclosure: any summation order in f32, then one rounding to the storage dtype.
struct Projected {
  Bounded queries, keys, gate_scores, head_weights;
};
Projected project(const Case& test_case, Precision precision = Precision::binary64);

// Pools of all sequences, back to back: sequence s has length / index_kpool of them from
// first_pool[s] on.
struct Pooled {
  std::vector<std::int64_t> first_pool;  // size sequences + 1
  Bounded exact;                         // [P, D] infinite precision
  Bounded pooled;                        // [P, D] faithful, rounded to mode.pooled
  Bounded rotated;  // [P, D] after the Hadamard and its rounding; equals `pooled` without one
  Bounded pool_weight_sum;  // [P]: largest deviation of a channel's weight sum from 1 (bound only)
};
Pooled pool(const IndexerInputs& inputs, Precision precision = Precision::binary64);
// Rotated queries [N, H, D] (the queries themselves without a Hadamard).
Bounded rotate_queries(const IndexerInputs& inputs, Precision precision = Precision::binary64);

// Quantiser. `scale_enclosure` of a vector known to lie in [low, high]; `code_enclosure` of one
// element given the scale that was stored.
struct Range {
  double low, high;
};
Range scale_enclosure(std::span<const double> low, std::span<const double> high,
                      const NumericMode& mode);
Range code_enclosure(double low, double high, double stored_scale, const NumericMode& mode);
// Nearest admissible answer of the reference itself: scale and codes (as values, not bits).
struct Quantised {
  double scale;
  std::vector<double> codes;
};
Quantised quantise(std::span<const double> values, const NumericMode& mode);

// How an implementation accumulates a dot product; see the truncation model in logits.cpp.
struct Accumulation {
  enum class Kind { f32_any_order, truncated, exact_integer } kind = Kind::f32_any_order;
  int step = 16;           // products added per instruction
  int fraction_bits = 24;  // kept below the largest summand
  int output_bits = 23;    // of the result, truncated
  int parts = 1;           // > 1: so many steps chained from zero, then added in f32, to nearest
};
Accumulation f32_any_order();
Accumulation mma_f16_bf16();  // the wider of sm_80 (24 bits, two steps of 8) and sm_90 (25 bits)
Accumulation mma_e4m3();      // two f16 halves, then added to the accumulator
Accumulation mma_i8();

// Stored operands of the logits, as real numbers: what the codes mean.
struct LogitOperands {
  std::int64_t heads = 0, head_dim = 0;
  std::span<const double> queries;       // [N, H, D] code values
  std::span<const double> query_scales;  // [N, H]; empty: 1
  std::span<const double> head_weights;  // [N, H]
  double logit_scale = 1;
  std::span<const double> pools;        // [P, D] code values of one sequence
  std::span<const double> pool_scales;  // [P]; empty: 1
  // Of the dtype the dot products are taken in: tensor cores align subnormal operands as if they
  // were this large. 0: there are none.
  double smallest_normal = 0;
};
// Logits of rows of one sequence: row i sees pools [0, visible[i]); [rows, max visible], entries
// beyond are NaN. Bound: |s_k| (sum |w| eps_dot + gamma_(H+4) sum |w| relu).
Bounded logits(const LogitOperands& operands, std::span<const std::int64_t> visible,
               const Accumulation& accumulation, Precision precision = Precision::binary64);

std::int64_t visible_pools(std::int64_t position, std::int64_t index_kpool);  // (position+1)/kpool
// The k largest of `scores`, lower index first among equals, NaN never; ascending indices.
std::vector<std::int64_t> select(std::span<const double> scores, std::int64_t k);
// Selected pools to padded token positions, then the forced tail, then -1; width of the config.
std::vector<std::int32_t> expand(std::span<const std::int64_t> pools, std::int64_t position,
                                 std::int64_t first_key, const IndexerConfig& config);

}  // namespace indexpool::reference
