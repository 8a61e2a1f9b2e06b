// A device from what was measured on it.
#pragma once

#include <optional>
#include <string>

#include "indexpool/model/calibration/samples.hpp"
#include "indexpool/model/config.hpp"

namespace indexpool::calibration {

// The built-in device that this one is, by compute capability, the words of its name and its
// memory's peak rate; none when it is another.
std::optional<DeviceSpec> base_of(const DeviceFacts& facts);

// Every constant the samples hold, with source and interval. What cannot be measured (the data
// sheet's peak rate, links to other GPUs) comes from `base`; without one the peak is memory clock
// times bus width as the driver tells them, and no links are known.
// Throws ConfigError when samples of a kind are missing, contradict each other or the base.
DeviceSpec calibrate(const Samples& samples, const std::string& name,
                     const std::optional<DeviceSpec>& base);

}  // namespace indexpool::calibration
