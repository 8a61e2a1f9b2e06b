// Runs a scenario's two sides and judges them.
#include "indexpool/verify/field/field.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/field/scenario.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

std::vector<FieldRow> all_rows() {
  std::vector<FieldRow> rows;
  for (const auto& part :
       {cache_scenarios(), logits_scenarios(), topk_scenarios(), replay_scenarios(),
        page_scenarios(), buffer_scenarios(), schedule_scenarios()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

bool failed(const Check& check) { return check.status == Status::failed && check.violations > 0; }

// A place is a coordinate: a row, a pool, a byte, a size.
bool names_a_place(const std::string& reason) {
  return std::ranges::any_of(reason, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string names_of_failed(const std::vector<Check>& checks) {
  std::string names;
  for (const Check& check : checks) {
    if (!failed(check)) continue;
    if (!names.empty()) names += ", ";
    names += check.name;
  }
  return names;
}

// Why the stand-in does not count as caught; empty: it was.
std::string why_not_caught(const FieldScenario& scenario, const std::vector<Check>& checks,
                           const std::string& refusal) {
  if (refusal.empty()) {
    const std::string others = names_of_failed(checks);
    return fmt::format("the check {} did not refuse it; {}", scenario.caught_by,
                       others.empty() ? "no other did" : "refused by " + others);
  }
  return names_a_place(refusal) ? "" : "the refusal names no place: " + refusal;
}

Record start(const FieldScenario& scenario, const char* implementation) {
  Record record;
  record.case_name = scenario.id;
  record.op = scenario.op;
  record.implementation = implementation;
  record.reference = fmt::format("{}", fmt::join(scenario.references, ", "));
  record.environment.target = scenario.op == "plan" ? "planner" : "simt";
  record.repeat = "indexpool field --id " + scenario.id;
  return record;
}

}  // namespace

std::vector<std::string_view> field_ids() {
  std::vector<std::string_view> ids;
  for (const FieldRow& row : all_rows()) ids.push_back(row.id);
  return ids;
}

std::vector<Check> field_checks(const FieldScenario& scenario, FieldSide side) {
  for (const FieldRow& row : all_rows()) {
    if (row.id == scenario.id) return row.checks(side);
  }
  throw ConfigError(
      fmt::format("scenario '{}' has no code: add a row to verify/field/*.cpp", scenario.id));
}

bool FieldResult::passed() const {
  return stand_in.verdict.status == Status::passed && ours.verdict.status == Status::passed;
}

FieldResult judge_scenario(const FieldScenario& scenario, const std::vector<Check>& stand_in,
                           const std::vector<Check>& ours) {
  FieldResult result{start(scenario, "stand-in"), start(scenario, "ours"), {}};
  const auto found = std::ranges::find_if(stand_in, [&](const Check& check) {
    return check.name == scenario.caught_by && failed(check);
  });
  if (found != stand_in.end()) result.refusal = found->reason;
  Check refused;
  refused.name = "refused";
  refused.compared = 1;
  refused.reason = why_not_caught(scenario, stand_in, result.refusal);
  if (refused.reason.empty()) {
    refused.reason = scenario.caught_by + ": " + result.refusal;
  } else {
    refused.status = Status::failed;
    refused.violations = 1;
  }
  result.stand_in.verdict = assemble({refused});
  result.ours.verdict = assemble(ours);
  const bool looked = std::ranges::any_of(ours, [&](const Check& check) {
    return check.name == scenario.caught_by && check.compared > 0;
  });
  if (!looked) {
    result.ours.verdict.status = Status::failed;
    result.ours.verdict.reason = "the check " + scenario.caught_by + " did not look at ours";
  }
  return result;
}

FieldResult run_scenario(const FieldScenario& scenario) {
  return judge_scenario(scenario, field_checks(scenario, FieldSide::stand_in),
                        field_checks(scenario, FieldSide::ours));
}

}  // namespace indexpool::verify
