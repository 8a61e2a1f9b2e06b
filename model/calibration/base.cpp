// Which built-in device a measured one is.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <utility>

#include "indexpool/model/calibration/calibrate.hpp"

namespace indexpool::calibration {
namespace {

// Memory clock times bus width against the data sheet: they differ by 0.3 % on an H200.
constexpr double peak_tolerance = 0.05;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// How many of the words of a device file's name ("a100-sxm4-80gb") the driver's name has; 0 without
// the first.
int words_in_common(const std::string& file_name, const std::string& driver_name) {
  std::istringstream words(file_name);
  int found = 0;
  for (std::string word; std::getline(words, word, '-');) {
    if (driver_name.find(word) != std::string::npos) {
      ++found;
    } else if (found == 0) {
      return 0;
    }
  }
  return found;
}

}  // namespace

std::optional<DeviceSpec> base_of(const DeviceFacts& facts) {
  std::optional<DeviceSpec> best;
  int most = 0;
  for (const std::string& name : device_names()) {
    const int words = words_in_common(name, lower_case(facts.name));
    if (words <= most) continue;
    DeviceSpec device = load_device(name);
    const double peak = device.hbm_peak_bytes_per_s.value;
    if (device.compute_capability != facts.compute_capability ||
        std::abs(facts.memory_peak_bytes_per_s - peak) > peak_tolerance * peak) {
      continue;
    }
    most = words;
    best = std::move(device);
  }
  return best;
}

}  // namespace indexpool::calibration
