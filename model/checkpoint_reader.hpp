// Values of a published config.json, by key; keys nobody asks for are passed over. Internal to the
// layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/strict_json.hpp"

namespace indexpool {

// Bounds of what a config may say: a value outside is a slip, not a model.
inline constexpr std::int64_t largest_layers = 10'000;
inline constexpr std::int64_t largest_width = std::int64_t{1} << 24;
inline constexpr std::int64_t largest_context = std::int64_t{1} << 40;

class ConfigReader {
 public:
  explicit ConfigReader(const JsonValue& object);

  const JsonValue& self() const { return self_; }
  // Absent and null are the same: transformers writes both.
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue at(std::string_view key) const;  // ConfigError when missing

  // A whole number from 1 (or `least`) to `most`, without a unit.
  std::int64_t size(std::string_view key, std::int64_t most = largest_width) const;
  std::int64_t size_or(std::string_view key, std::int64_t otherwise, std::int64_t least = 1,
                       std::int64_t most = largest_width) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  // One entry for each layer.
  std::vector<JsonValue> by_layer(std::string_view key, std::int64_t layers) const;

 private:
  JsonValue self_;
  std::map<std::string, JsonValue, std::less<>> members_;
};

// `value` as a whole number; a text such as "4K" or "512 MB" is named as a unit where none belongs.
std::int64_t whole_number(const JsonValue& value, std::int64_t least, std::int64_t most);

}  // namespace indexpool
