// JSON behind a built-in name or a path. Internal to the layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/data.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

// A text with '/' or ending in ".json" is a path. `kind` and `folder` are for the error's text.
JsonValue find_json(const std::string& name_or_path, std::span<const DataFile> files,
                    std::string_view kind, std::string_view folder);
std::vector<std::string> names_of(std::span<const DataFile> files);
// A text that is not empty.
std::string sourced_text(const JsonValue& value);

}  // namespace indexpool
