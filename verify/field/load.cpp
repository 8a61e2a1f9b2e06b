// field.json, strictly.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/verify/field/field.hpp"

namespace indexpool {
std::span<const DataFile> embedded_field();  // verify/field/*.json
}

namespace indexpool::verify {
namespace {

std::vector<std::string> texts(const JsonValue& list) {
  std::vector<std::string> values;
  for (const JsonValue& value : list.array()) values.push_back(value.text());
  if (values.empty()) list.fail("expected at least one reference");
  return values;
}

void expect_one_of(const JsonValue& value, std::initializer_list<std::string_view> known) {
  const std::string found = value.text();
  if (std::ranges::find(known, found) == known.end())
    value.fail(fmt::format("found \"{}\", expected one of: {}", found, fmt::join(known, ", ")));
}

FieldScenario scenario_of(const JsonValue& value) {
  const JsonObject row = value.object(
      {"id", "kind", "op", "references", "symptom", "cause", "right", "stand_in", "caught_by"});
  expect_one_of(row["kind"], {"kernel", "page table", "planner", "memory plan"});
  expect_one_of(row["op"], {"pool", "append", "quantize_query", "logits", "topk", "plan"});
  return {row["id"].text(),    row["symptom"].text(),  texts(row["references"]),
          row["kind"].text(),  row["op"].text(),       row["cause"].text(),
          row["right"].text(), row["stand_in"].text(), row["caught_by"].text()};
}

FieldOmission omission_of(const JsonValue& value) {
  const JsonObject row = value.object({"references", "symptom", "why"});
  return {texts(row["references"]), row["symptom"].text(), row["why"].text()};
}

}  // namespace

FieldSuite parse_field_suite(std::string_view text, std::string_view where) {
  const JsonObject file =
      parse_json(text, where).object({"name", "why", "scenarios", "not_represented"});
  FieldSuite suite{file["name"].text(), file["why"].text(), {}, {}};
  for (const JsonValue& value : file["scenarios"].array()) {
    FieldScenario scenario = scenario_of(value);
    const bool repeated = std::ranges::any_of(
        suite.scenarios, [&](const FieldScenario& other) { return other.id == scenario.id; });
    if (repeated) value.fail(fmt::format("there is a scenario '{}' above", scenario.id));
    suite.scenarios.push_back(std::move(scenario));
  }
  for (const JsonValue& value : file["not_represented"].array()) {
    suite.not_represented.push_back(omission_of(value));
  }
  return suite;
}

FieldSuite field_suite() {
  for (const DataFile& file : embedded_field()) {
    if (file.name == "field") return parse_field_suite(file.text, "verify/field/field.json");
  }
  throw InternalError("verify/field/field.json is not embedded");
}

const FieldScenario& find_scenario(const FieldSuite& suite, const std::string& id) {
  std::vector<std::string> known;
  for (const FieldScenario& scenario : suite.scenarios) {
    if (scenario.id == id) return scenario;
    known.push_back(scenario.id);
  }
  const std::vector<std::string> near = near_names(id, known);
  throw ConfigError(fmt::format("there is no scenario '{}'; {}: {}", id,
                                near.empty() ? "there are" : "near names",
                                fmt::join(near.empty() ? known : near, ", ")));
}

}  // namespace indexpool::verify
