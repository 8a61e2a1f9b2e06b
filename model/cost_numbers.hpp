// Predictions without words, for sweeps over millions of designs.
#pragma once

#include "indexpool/model/cost.hpp"

namespace indexpool {

struct CostNumbers {
  Seconds time, low, high;
};

// Time and interval of predict(work, device, options), about fifty times as fast: no term is put
// into words. Throws ConfigError as predict() does.
CostNumbers predict_numbers(const Work& work, const DeviceSpec& device,
                            const CostOptions& options = {});

}  // namespace indexpool
