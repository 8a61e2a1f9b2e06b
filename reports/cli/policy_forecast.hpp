// What a published form of pooling takes on a device: the declared work of its kernels, put through
// the cost model.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/reports/cli/forecast.hpp"

namespace indexpool::cli {

// Pool weights, where a kernel makes them, and pooling of `tokens` tokens in one launch each, with
// the problem's policy, mode and sizes.
std::vector<OperationForecast> policy_forecast(const Problem& problem, std::int64_t tokens,
                                               const DeviceSpec& device);
// Bytes of what is pooled and of what is stored instead, scales along, for `tokens` tokens.
struct PolicyBytes {
  std::int64_t vectors = 0, pooled = 0;
};
PolicyBytes policy_bytes(const Problem& problem, std::int64_t tokens);

}  // namespace indexpool::cli
