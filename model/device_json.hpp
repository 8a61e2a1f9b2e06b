// Devices as JSON, the way load_device() reads them.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool {

struct NamedConstant {
  std::string name;  // "hbm_read_bytes_per_s", "matrix_flop_per_s/bf16"
  Constant constant;
};
// Every constant of a device, in the order of its file.
std::vector<NamedConstant> named_constants(const DeviceSpec& device);

// A file that load_device() reads back as the same device, each constant with its kind.
std::string to_json(const DeviceSpec& device);

}  // namespace indexpool
