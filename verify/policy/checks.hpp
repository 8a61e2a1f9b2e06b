// The checks of a published form. Each looks at one property and returns what it found.
#pragma once

#include <span>
#include <vector>

#include "indexpool/reference/policy.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::policy {

// Pooled vectors as the pools of one sequence with index_kpool 1, for the checks that pools have.
IndexerInputs as_pools(const PoolingInputs& inputs);
StoredPools stored_pools(const PoolingInputs& inputs, const PooledOutput& output);
// Error over bound of "bound" where a bound spans more than a few binary32 numbers: how far across
// a set of three says nothing.
double wide_utilisation(const StoredPools& stored, const reference::Bounded& expected);
// What those checks compare with: every step of a pooled key is `pooled`.
reference::Pooled as_reference(const reference::PolicyPooled& expected);

// The checks as one of this name, without a utilisation of its own.
Check folded(std::string name, const std::vector<Check>& checks);

// "bound": each weight lies in its enclosure.
Check check_weights(const PoolingInputs& inputs, std::span<const float> pool_weights,
                    const reference::Bounded& expected);
// "weight_range": finite, and from 0 on where the policy promises it. Here and in "convexity" what
// the reference leaves open (binary32 may overflow) is not judged.
Check check_weight_range(const PoolingInputs& inputs, std::span<const float> pool_weights,
                         const reference::Bounded& expected);
// "fallback": the mean was taken exactly where the sum of the weights underflows.
Check check_fallbacks(const PoolingInputs& inputs, std::span<const std::int32_t> found,
                      const reference::PolicyPooled& expected);
// "convexity": between the smallest and the largest vector, channel by channel, up to rounding and
// the quantiser's step. Skipped with the reason where the policy promises none.
Check check_convexity(const PoolingInputs& inputs, const StoredPools& stored,
                      const reference::Bounded& expected);

// Groups whose vectors can be doubled without leaving the normal range, and whose scale is above
// the floor of the quantiser.
std::vector<char> scalable(const PoolingInputs& inputs, const reference::PolicyPooled& expected);
PoolingInputs doubled(const PoolingInputs& inputs);
// "scale": twice the vectors give twice the pooled vectors: `of_doubled`, halved, lies in the
// enclosures of the original.
Check check_scaling(const PoolingInputs& inputs, const PooledOutput& of_doubled,
                    const reference::PolicyPooled& expected, Mask mine);

// What a monitor shows: mean entropy of the weight distributions in bits, the largest deviation of
// their sum from 1, groups that fell back to the mean.
void add_monitoring(const PoolingInputs& inputs, std::span<const float> pool_weights,
                    std::span<const std::int32_t> fallbacks, Record& record);

}  // namespace indexpool::verify::policy
