// Strict reading of JSON: every key is named in advance, every value has one type, and an error
// says file, JSON pointer, what was found and what was expected. Not installed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace indexpool {

class JsonObject;
struct JsonDocument;

// A value inside a document, which it keeps alive. Every reader throws ConfigError when the value
// is something else.
class JsonValue {
 public:
  JsonValue(std::shared_ptr<const JsonDocument> document, const nlohmann::json* node,
            std::string pointer)
      : document_(std::move(document)), node_(node), pointer_(std::move(pointer)) {}

  std::string where() const;                               // "devices/x.json: /hbm/read"
  std::string found() const;                               // "a string", "the number 1.5", ...
  [[noreturn]] void fail(std::string_view message) const;  // ConfigError "<where>: <message>"

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_text() const;

  std::string text() const;
  bool boolean() const;
  double number() const;  // an integer counts as a number
  // Written without fraction or exponent, and within [low, high].
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t unsigned_integer() const;
  std::vector<JsonValue> array() const;
  // Keys are free, in name order.
  std::vector<std::pair<std::string, JsonValue>> members() const;
  // Exactly the keys named here: all of `required`, none but those and `optional`.
  JsonObject object(std::initializer_list<std::string_view> required,
                    std::initializer_list<std::string_view> optional = {}) const;

 private:
  JsonValue child(const nlohmann::json& node, std::string_view step) const;
  [[noreturn]] void expected(std::string_view what) const;

  std::shared_ptr<const JsonDocument> document_;
  const nlohmann::json* node_;
  std::string pointer_;
};

// An object whose keys were checked. Asking for a key it was not told of is our mistake
// (InternalError), not the file's.
class JsonObject {
 public:
  JsonValue at(std::string_view key) const;
  JsonValue operator[](std::string_view key) const { return at(key); }
  std::optional<JsonValue> find(std::string_view key) const;  // of an optional key
  std::string where() const { return self_.where(); }

 private:
  friend class JsonValue;
  JsonObject(JsonValue self, std::set<std::string, std::less<>> known)
      : self_(std::move(self)), known_(std::move(known)) {}

  JsonValue self_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

// `file` is how errors name the text. Throws ConfigError for text that is not JSON (with line and
// column) and for a key that appears twice in one object.
JsonValue parse_json(std::string_view text, std::string_view file);
JsonValue read_json(const std::filesystem::path& path);  // ConfigError also when unreadable

// "; did you mean "layers"?" from the nearest of `known`, or "" when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace indexpool
