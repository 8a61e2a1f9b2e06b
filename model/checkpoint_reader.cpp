#include "indexpool/model/checkpoint_reader.hpp"

#include <fmt/format.h>

namespace indexpool {

std::int64_t whole_number(const JsonValue& value, std::int64_t least, std::int64_t most) {
  if (value.is_text()) {
    value.fail(
        fmt::format("found the text \"{}\", expected a whole number without a unit: sizes "
                    "are elements, tokens or layers as the key says",
                    value.text()));
  }
  return value.integer(least, most);
}

ConfigReader::ConfigReader(const JsonValue& object) : self_(object) {
  for (const auto& [key, value] : object.members()) {
    if (!value.is_null()) members_.emplace(key, value);
  }
}

std::optional<JsonValue> ConfigReader::find(std::string_view key) const {
  const auto found = members_.find(key);
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

JsonValue ConfigReader::at(std::string_view key) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) {
    std::vector<std::string> known;
    for (const auto& [name, member] : members_) known.push_back(name);
    self_.fail(fmt::format("the key \"{}\" is missing{}", key, did_you_mean(key, known)));
  }
  return *value;
}

std::int64_t ConfigReader::size(std::string_view key, std::int64_t most) const {
  return whole_number(at(key), 1, most);
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                   std::int64_t most) const {
  const std::optional<JsonValue> value = find(key);
  return value ? whole_number(*value, least, most) : otherwise;
}

bool ConfigReader::flag_or(std::string_view key, bool otherwise) const {
  const std::optional<JsonValue> value = find(key);
  return value ? value->boolean() : otherwise;
}

std::string ConfigReader::text_or(std::string_view key, std::string_view otherwise) const {
  const std::optional<JsonValue> value = find(key);
  return value ? value->text() : std::string(otherwise);
}

std::vector<JsonValue> ConfigReader::by_layer(std::string_view key, std::int64_t layers) const {
  const JsonValue list = at(key);
  std::vector<JsonValue> entries = list.array();
  if (static_cast<std::int64_t>(entries.size()) != layers) {
    list.fail(
        fmt::format("found {} entries, expected one for each of the {} layers "
                    "(num_hidden_layers)",
                    entries.size(), layers));
  }
  return entries;
}

}  // namespace indexpool
