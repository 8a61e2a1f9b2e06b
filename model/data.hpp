// JSON files embedded at build time.
#pragma once

#include <span>
#include <string_view>

namespace indexpool {

struct DataFile {
  std::string_view name, text;
};
std::span<const DataFile> embedded_devices();        // model/devices/*.json
std::span<const DataFile> embedded_architectures();  // model/architectures/*.json
std::span<const DataFile> embedded_suites();         // verify/suites/*.json

}  // namespace indexpool
