// The golden cases that come with the program.
#pragma once

#include <filesystem>
#include <string>

namespace indexpool::cli {

// `name`.safetensors in the source tree it was built from, else where it was installed. Throws
// ConfigError saying where it looked.
std::filesystem::path golden_case(const std::string& name);

}  // namespace indexpool::cli
