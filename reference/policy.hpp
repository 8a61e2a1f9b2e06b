// The published forms of pooling, with enclosures (model/pooling.hpp has the formulas).
#pragma once

#include <span>
#include <vector>

#include "indexpool/model/pooling.hpp"
#include "indexpool/reference/bounded.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// [sets, m], or [G, m, D] of per-channel policies.
Shape pool_weight_shape(const PoolingInputs& inputs);

// Pool weights as a binary32 implementation may compute them: dot products in any order (tensor
// cores included for the hidden part of gated), exp within exp_ulps, log within log_ulps, quotients
// within quotient_roundings (policy/functions.hpp, policy/set_weights.cpp). Given weights are
// exact. Absent vectors of a group have weight 0; where a set serves several groups, their absent
// vectors are left out by `pool`. Open where an intermediate may leave the range of binary32; a
// cosine where |q|^2, |V|^2 or their product is not a normal number, but 0 for a zero vector.
// ConfigError naming operand and place for what is not a number (a gate score may be -inf, but not
// all of a group's channel), for negative ages and counts, for sigma and tau outside 2^-30 to 2^30,
// and for block_max, which has no weights.
Bounded pool_weights(const PoolingInputs& inputs, Precision precision = Precision::binary64);

// From stored pool weights (f32 values, taken as exact), [sets, m] or [G, m, D]. What is not finite
// leaves the elements that see it open.
struct PolicyPooled {
  Bounded exact;   // [G, D] infinite precision from the operands, not from the stored weights
  Bounded before;  // [G, D] faithful, as f32 before any rounding to storage
  Bounded pooled;  // [G, D] faithful, rounded to mode.pooled: what is stored, or quantised
  std::vector<char> fallback;  // [G] 1: the weights' sum underflows, the mean is pooled;
                               // 2: rounding decides (both are admissible, elements enclose both)
  // [G] sum of the effective weights minus 1, from the stored ones: what vectors of ones would
  // pool to without a norm. Per channel the hull of all, and the value furthest from 0.
  Bounded weight_sum;
};
PolicyPooled pool(const PoolingInputs& inputs, std::span<const float> stored_weights,
                  Precision precision = Precision::binary64);

Tensor block_max(const BlockMaxInputs& inputs);  // [rows, ceil(tokens / block)] f32, exact

}  // namespace indexpool::reference
