// Bugs that public reports tell of, each as a scenario: a stand-in that shows the symptom must be
// refused by the check that is named for it, and our counterpart must pass the same check.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::verify {

enum class FieldSide { stand_in, ours };

// A row of field.json.
struct FieldScenario {
  std::string id, symptom;
  std::vector<std::string> references;  // "vllm-project/vllm#54359"
  std::string kind;                     // "kernel", "page table", "planner", "memory plan"
  std::string op;                       // to_string(Op), or "plan"
  std::string cause, right;             // why it happened, what is right instead
  std::string stand_in;                 // what is run in its place
  std::string caught_by;                // name of a check
};
// A reported bug that no check of ours could refuse, and why.
struct FieldOmission {
  std::vector<std::string> references;
  std::string symptom, why;
};
struct FieldSuite {
  std::string name, why;
  std::vector<FieldScenario> scenarios;
  std::vector<FieldOmission> not_represented;
};
FieldSuite field_suite();
// Strict JSON; ConfigError naming file and JSON pointer.
FieldSuite parse_field_suite(std::string_view text, std::string_view where);
const FieldScenario& find_scenario(const FieldSuite& suite, const std::string& id);  // ConfigError

// The checks of one side of a scenario: the same ones, with the same expectations, for both.
// A refusal by the executor is the check "executor".
std::vector<Check> field_checks(const FieldScenario& scenario, FieldSide side);
// Ids that have code; a row of field.json each.
std::vector<std::string_view> field_ids();

// Two records of case scenario.id. "stand-in": passed when the named check refused it with a reason
// that names a place; the refusal is the reason of its check "refused". Ours: its own checks.
struct FieldResult {
  Record stand_in, ours;
  std::string refusal;  // what the named check said of the stand-in; empty when it did not refuse
  bool passed() const;
};
FieldResult run_scenario(const FieldScenario& scenario);
// The verdicts alone, from the checks of both sides.
FieldResult judge_scenario(const FieldScenario& scenario, const std::vector<Check>& stand_in,
                           const std::vector<Check>& ours);

}  // namespace indexpool::verify
