// Hands an operation's outputs to Options::observe; nothing happens when nobody listens.
#pragma once

#include <cstdint>
#include <span>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// The pools of `mine`, dequantised, beside what infinite precision gives.
void observe_pools(const Options& options, const IndexerInputs& inputs, Op op,
                   const StoredPools& stored, const reference::Pooled& expected, Mask mine);
void observe_queries(const Options& options, const IndexerInputs& inputs,
                     const QueryOutput& output);
void observe_logits(const Options& options, const IndexerInputs& inputs, const LogitBounds& bounds,
                    std::span<const float> logits, std::int64_t stride);
// The selection of every row beside the one that the documented rule makes of `logits`.
void observe_selection(const Options& options, const IndexerInputs& inputs,
                       std::span<const float> logits, std::int64_t stride,
                       std::span<const std::int32_t> selection);

}  // namespace indexpool::verify
