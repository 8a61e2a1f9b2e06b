// The data files that come with the program: in the source tree it was built from, else where it
// was installed. ConfigError saying where it looked.
#pragma once

#include <filesystem>
#include <string>

namespace indexpool::cli {

std::filesystem::path golden_case(const std::string& name);  // `name`.safetensors
std::filesystem::path activations_file();                    // of verify/recall/activations.py

}  // namespace indexpool::cli
