// Messages between the GPUs of one host: latency and bytes over the links.
#pragma once

#include <cstdint>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/step/operation.hpp"

namespace indexpool::step {

// The faster of two ways: a kernel that reads from all GPUs directly (small messages), and NCCL's
// rings (large ones). ConfigError when the device has no links.
Prediction predict(const Collective& collective, std::int64_t rows, const DeviceSpec& device,
                   const CostOptions& options);
CostNumbers predict_numbers(const Collective& collective, std::int64_t rows,
                            const DeviceSpec& device, const CostOptions& options);

}  // namespace indexpool::step
