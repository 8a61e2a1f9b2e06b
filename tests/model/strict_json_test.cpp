#include "indexpool/model/strict_json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

JsonValue parse(std::string_view text) { return parse_json(text, "devices/x.json"); }

TEST(StrictJson, ReadsEachTypeWhereItIsWanted) {
  const JsonValue root = parse(R"({"a": "t", "b": true, "c": 1.5, "d": -7, "e": [1, 2], "f": null,
                                   "g": 18446744073709551615})");
  const JsonObject in = root.object({"a", "b", "c", "d", "e", "f", "g"}, {"h"});
  EXPECT_EQ(in["a"].text(), "t");
  EXPECT_TRUE(in["b"].boolean());
  EXPECT_EQ(in["c"].number(), 1.5);
  EXPECT_EQ(in["d"].integer(), -7);
  EXPECT_EQ(in["d"].number(), -7);
  EXPECT_EQ(in["e"].array().at(1).integer(), 2);
  EXPECT_TRUE(in["f"].is_null());
  EXPECT_EQ(in["g"].unsigned_integer(), 18446744073709551615ULL);
  EXPECT_FALSE(in.find("h").has_value());
}

struct BadText {
  const char* name;
  const char* text;
  std::vector<std::string> says;
};

// Reads {"hbm": {"read": number, "sms": integer 1..1000}, "names": [text]}.
void read_sample(std::string_view text) {
  const JsonObject in = parse(text).object({"hbm", "names"});
  const JsonObject hbm = in["hbm"].object({"read", "sms"}, {"write"});
  hbm["read"].number();
  hbm["sms"].integer(1, 1000);
  for (const JsonValue& name : in["names"].array()) name.text();
}

TEST(StrictJson, ErrorsSayWhereWhatAndWhatInstead) {
  const BadText rows[] = {
      {"wrong type",
       R"({"hbm": {"read": "fast", "sms": 1}, "names": []})",
       {"devices/x.json: /hbm/read: found a string, expected a number"}},
      {"fraction",
       R"({"hbm": {"read": 1, "sms": 1.5}, "names": []})",
       {"/hbm/sms: found the number 1.5, expected an integer"}},
      {"exponent", R"({"hbm": {"read": 1, "sms": 1e2}, "names": []})", {"expected an integer"}},
      {"too low",
       R"({"hbm": {"read": 1, "sms": 0}, "names": []})",
       {"/hbm/sms: found the number 0, expected an integer from 1 to 1000"}},
      {"past int64",
       R"({"hbm": {"read": 1, "sms": 9223372036854775808}, "names": []})",
       {"found the number 9223372036854775808"}},
      {"missing", R"({"hbm": {"sms": 1}, "names": []})", {R"(/hbm: the key "read" is missing)"}},
      {"unknown",
       R"({"hbm": {"raed": 1, "sms": 1}, "names": []})",
       {R"(/hbm/raed: unknown key "raed")", R"(did you mean "read")", "known here: read, sms"}},
      {"twice",
       R"({"hbm": {"read": 1, "sms": 1, "read": 2}, "names": []})",
       {R"(devices/x.json: /hbm: the key "read" appears twice)"}},
      {"twice in an array",
       R"({"names": [1, [], {"a": {}}, {"a": [{}], "a": 1}]})",
       {R"(/names/3: the key "a" appears twice)"}},
      {"item",
       R"({"hbm": {"read": 1, "sms": 1}, "names": ["a", null]})",
       {"/names/1: found null, expected a string"}},
      {"not an object", R"([1])", {"devices/x.json: /: found an array, expected an object"}},
      {"not JSON", "{\n  \"hbm\": }", {"devices/x.json: line 2, column 10: not JSON: "}},
      {"cut off", R"({"hbm")", {"line 1, column 7"}},
      {"empty", "", {"line 1, column 1"}},
      {"more after it", "{} {}", {"line 1, column 4"}},
      {"too large", R"({"hbm": {"read": 1e999, "sms": 1}, "names": []})", {"devices/x.json: not"}},
      {"not UTF-8", "{\"\xff\": 1}", {"devices/x.json: line 1"}}};
  for (const BadText& row : rows) {
    SCOPED_TRACE(row.name);
    expect_parts(config_error_of([&] { read_sample(row.text); }), row.says);
  }
}

TEST(StrictJson, PointersEscapeSlashesAndTildes) {
  const auto members = parse(R"({"a/b~c": 1})").members();
  EXPECT_EQ(members.at(0).first, "a/b~c");
  expect_parts(config_error_of([&] { members.at(0).second.text(); }), {"/a~1b~0c"});
}

TEST(StrictJson, ReadingAnUnannouncedKeyIsOurMistake) {
  const JsonObject in = parse(R"({"a": 1})").object({"a"}, {"b"});
  EXPECT_THROW(in["c"], InternalError);
  EXPECT_THROW(in["b"], InternalError);
}

TEST(StrictJson, AFileThatIsNotThereIsNamed) {
  const TemporaryFolder folder;
  expect_parts(config_error_of([&] { read_json(folder / "absent.json"); }), {"absent.json"});
  expect_parts(config_error_of([&] { read_json(folder.path()); }), {"cannot be read"});
  write_bytes(folder / "good.json", R"({"a": 3})");
  EXPECT_EQ(read_json(folder / "good.json").object({"a"})["a"].integer(), 3);
}

RC_GTEST_PROP(StrictJsonLaws, AnyTextIsReadOrRefused, (std::string text)) {
  const std::string letters = R"({}[]",:01.eE-+ \ntrufalsn)" + text;
  const auto random = *rc::gen::container<std::string>(rc::gen::elementOf(letters));
  try {
    parse(random).members();
  } catch (const ConfigError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("devices/x.json: "));
  }
}

}  // namespace
}  // namespace indexpool
