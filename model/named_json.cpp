#include "indexpool/model/named_json.hpp"

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

}  // namespace

std::vector<std::string> names_of(std::span<const DataFile> files) {
  std::vector<std::string> names;
  for (const DataFile& file : files) names.emplace_back(file.name);
  return names;
}

JsonValue find_json(const std::string& name_or_path, std::span<const DataFile> files,
                    std::string_view kind, std::string_view folder) {
  if (is_path(name_or_path)) return read_json(name_or_path);
  for (const DataFile& file : files) {
    if (file.name == name_or_path) {
      return parse_json(file.text, fmt::format("{}/{}.json", folder, file.name));
    }
  }
  const std::vector<std::string> names = names_of(files);
  throw ConfigError(fmt::format(
      "unknown {} \"{}\"{} (built in: {}; for a file of your own, give a path with '/' or '.json')",
      kind, name_or_path, did_you_mean(name_or_path, names), fmt::join(names, ", ")));
}

std::string sourced_text(const JsonValue& value) {
  std::string text = value.text();
  if (text.empty()) value.fail("found an empty text, expected one that names something");
  return text;
}

}  // namespace indexpool
