#include "indexpool/model/strict_json.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {

struct JsonDocument {
  std::string file;
  nlohmann::json root;
};

namespace {

using nlohmann::json;

// A step of a JSON pointer (RFC 6901): "~" and "/" inside a name are escaped.
std::string escaped(std::string_view step) {
  std::string text;
  for (const char c : step) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

// Follows the parser and throws at the second of two equal keys: the document tree would silently
// keep only one of them.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string_view file) : file_(file) {}

  bool operator()(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        levels_.push_back({event == json::parse_event_t::array_start, 0, {}, {}});
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        levels_.pop_back();
        if (!levels_.empty()) ++levels_.back().index;
        break;
      case json::parse_event_t::value:
        if (!levels_.empty()) ++levels_.back().index;
        break;
      case json::parse_event_t::key:
        see(parsed.get<std::string>());
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_array;
    std::int64_t index;  // of the element being read
    std::string key;     // of the member being read
    std::set<std::string> keys;
  };

  void see(std::string key) {
    if (!levels_.back().keys.insert(key).second) {
      throw ConfigError(
          fmt::format(R"({}: {}: the key "{}" appears twice; keep one)", file_, pointer(), key));
    }
    levels_.back().key = std::move(key);
  }

  std::string pointer() const {
    std::string text;
    for (auto level = levels_.begin(); level + 1 != levels_.end(); ++level) {
      text += '/' + (level->is_array ? std::to_string(level->index) : escaped(level->key));
    }
    return text.empty() ? "/" : text;
  }

  std::string file_;
  std::vector<Level> levels_;
};

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, before.size() - start + 1);
}

// The parser's reason without its error number and position, which we print our own way.
std::string reason(const json::exception& error) {
  std::string text = error.what();
  if (const auto bracket = text.find("] "); bracket != std::string::npos) {
    text.erase(0, bracket + 2);
  }
  const auto colon = text.find(": ");
  if (text.starts_with("parse error at ") && colon != std::string::npos) text.erase(0, colon + 2);
  return text;
}

}  // namespace

JsonValue parse_json(std::string_view text, std::string_view file) {
  auto document = std::make_shared<JsonDocument>();
  document->file = file;
  DuplicateKeys duplicates(file);
  try {
    document->root = json::parse(text, [&duplicates](int, json::parse_event_t event, json& parsed) {
      return duplicates(event, parsed);
    });
  } catch (const json::parse_error& error) {
    throw ConfigError(fmt::format("{}: {}: not JSON: {}", file, line_and_column(text, error.byte),
                                  reason(error)));
  } catch (const json::exception& error) {  // a number that no double holds
    throw ConfigError(fmt::format("{}: not JSON that can be read: {}", file, reason(error)));
  }
  const json* root = &document->root;
  return JsonValue(std::move(document), root, "");
}

JsonValue read_json(const std::filesystem::path& path) {
  // Reading a folder throws an exception of the stream's own.
  std::ifstream stream;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) stream.open(path, std::ios::binary);
  if (!stream.is_open()) {
    throw ConfigError(fmt::format("{}: cannot be read; expected a JSON file", path.string()));
  }
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  return parse_json(text, path.string());
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = near_names(name, known);
  if (near.empty()) return "";
  return fmt::format(R"(; did you mean "{}"?)", fmt::join(near, R"(" or ")"));
}

std::string JsonValue::where() const {
  return fmt::format("{}: {}", document_->file, pointer_.empty() ? "/" : pointer_);
}

void JsonValue::fail(std::string_view message) const {
  throw ConfigError(fmt::format("{}: {}", where(), message));
}

void JsonValue::expected(std::string_view what) const {
  fail(fmt::format("found {}, expected {}", found(), what));
}

std::string JsonValue::found() const {
  switch (node_->type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return node_->get<bool>() ? "true" : "false";
    case json::value_t::string:
      return "a string";
    case json::value_t::array:
      return "an array";
    case json::value_t::object:
      return "an object";
    default:
      return "the number " + node_->dump();
  }
}

bool JsonValue::is_null() const { return node_->is_null(); }
bool JsonValue::is_object() const { return node_->is_object(); }
bool JsonValue::is_array() const { return node_->is_array(); }
bool JsonValue::is_text() const { return node_->is_string(); }

std::string JsonValue::text() const {
  if (!node_->is_string()) expected("a string");
  return node_->get<std::string>();
}

bool JsonValue::boolean() const {
  if (!node_->is_boolean()) expected("true or false");
  return node_->get<bool>();
}

double JsonValue::number() const {
  if (!node_->is_number()) expected("a number");
  return node_->get<double>();
}

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  if (!node_->is_number_integer()) expected("an integer");
  const bool fits = !node_->is_number_unsigned() ||
                    node_->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  const std::int64_t value = fits ? node_->get<std::int64_t>() : largest;
  if (!fits || value < low || value > high) {
    expected(fmt::format("an integer from {} to {}", low, high));
  }
  return value;
}

std::uint64_t JsonValue::unsigned_integer() const {
  if (!node_->is_number_unsigned()) expected("an integer from 0 to 18446744073709551615");
  return node_->get<std::uint64_t>();
}

JsonValue JsonValue::child(const json& node, std::string_view step) const {
  return JsonValue(document_, &node, pointer_ + '/' + escaped(step));
}

std::vector<JsonValue> JsonValue::array() const {
  if (!node_->is_array()) expected("an array");
  std::vector<JsonValue> values;
  values.reserve(node_->size());
  for (const json& item : *node_) values.push_back(child(item, std::to_string(values.size())));
  return values;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!node_->is_object()) expected("an object");
  std::vector<std::pair<std::string, JsonValue>> values;
  for (const auto& [key, item] : node_->items()) values.emplace_back(key, child(item, key));
  return values;
}

JsonObject JsonValue::object(std::initializer_list<std::string_view> required,
                             std::initializer_list<std::string_view> optional) const {
  JsonObject object(*this, {required.begin(), required.end()});
  object.known_.insert(optional.begin(), optional.end());
  object.members_ = members();
  const std::vector<std::string> known(object.known_.begin(), object.known_.end());
  for (const auto& [key, value] : object.members_) {
    if (object.known_.contains(key)) continue;
    const std::string near = did_you_mean(key, known);
    value.fail(
        fmt::format(R"(unknown key "{}"{} (known here: {}))", key, near, fmt::join(known, ", ")));
  }
  for (const std::string_view key : required) {
    if (!object.find(key)) fail(fmt::format(R"(the key "{}" is missing)", key));
  }
  return object;
}

std::optional<JsonValue> JsonObject::find(std::string_view key) const {
  require(known_.contains(key), "a JSON key is read that was not announced");
  for (const auto& [name, value] : members_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

JsonValue JsonObject::at(std::string_view key) const {
  const std::optional<JsonValue> value = find(key);
  require(value.has_value(), "an optional JSON key is read without asking whether it is there");
  return *value;
}

}  // namespace indexpool
