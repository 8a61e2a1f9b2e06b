// The published forms once more and plainly, in binary64, with how far a kernel that rounds to
// binary32 in the documented order may be off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/pooling.hpp"

#include "policy_bench.hpp"

namespace indexpool::kernels {

struct Near {
  double value = 0, error = 0;
};

// [sets, m] or [G, m, D]. `accumulation`: of hidden_gates.
std::vector<Near> host_weights(const PoolingInputs& inputs, Accumulation accumulation);

struct HostPooled {
  std::vector<Near> y;  // [D], before rounding
  bool fallback = false;
};
// Group g from stored pool weights, which are exact.
HostPooled host_pooled(const PoolingInputs& inputs, const std::vector<float>& pool_weights,
                       std::int64_t group);

// Empty, or how the run's group differs from what `host_pooled` allows: elements or scale and
// codes, checksums, the mark of a fallback.
std::string difference(const PoolingInputs& inputs, const PolicyRun& run, std::int64_t group);

}  // namespace indexpool::kernels
