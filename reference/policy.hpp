// The published forms of pooling, with enclosures (model/pooling.hpp has the formulas).
#pragma once

#include "indexpool/model/pooling.hpp"
#include "indexpool/reference/bounded.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// Pool weights [sets, m], or [G, m, D] for per-channel policies, as a binary32 implementation may
// compute them: dot products in any order (tensor cores included for the hidden part of gated),
// exp within exp_ulps, quotients within quotient_roundings. Given weights are exact. ConfigError
// for block_max, which has none.
Bounded pool_weights(const PoolingInputs& inputs, Precision precision = Precision::binary64);

// From stored pool weights (f32 values, taken as exact), [sets, m] or [G, m, D].
struct PolicyPooled {
  Bounded exact;   // [G, D] infinite precision from the operands, not from the stored weights
  Bounded before;  // [G, D] faithful, as f32 before any rounding to storage
  Bounded pooled;  // [G, D] faithful, rounded to mode.pooled: what is stored, or quantised
  std::vector<char> fallback;  // [G] 1: the weights' sum underflows, the mean is pooled;
                               // 2: rounding decides (both are admissible, elements enclose both)
  Bounded weight_sum;          // [G] (max deviation over channels when per channel): sum of the
                               // effective weights, from the stored ones
};
PolicyPooled pool(const PoolingInputs& inputs, std::span<const float> stored_weights,
                  Precision precision = Precision::binary64);

Tensor block_max(const BlockMaxInputs& inputs);  // [rows, ceil(tokens / block)] f32, exact

}  // namespace indexpool::reference
