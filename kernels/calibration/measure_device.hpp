// Micro-kernels that measure what a device can do: what `indexpool calibrate` runs.
#pragma once

#include <functional>
#include <string>

#include "indexpool/model/calibration/samples.hpp"

namespace indexpool::kernels {

struct CalibrationOptions {
  std::string date;    // written into the samples
  bool quick = false;  // fewer repeats
  std::function<void(const std::string&)> advance = [](const std::string&) {};  // what comes next
};

// Runs everything on the current CUDA device, its clocks as they are found, within seconds. Needs
// 4 GiB of its memory. Throws EnvironmentError without a device or a toolkit.
calibration::Samples measure_device(const CalibrationOptions& options);

}  // namespace indexpool::kernels
