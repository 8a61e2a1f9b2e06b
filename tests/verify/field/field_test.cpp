// Each scenario both ways, and the table they come from.
#include "indexpool/verify/field/field.hpp"

#include <algorithm>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify {
namespace {

const FieldSuite& suite() {
  static const FieldSuite read = field_suite();
  return read;
}

const Check* find(const std::vector<Check>& checks, const std::string& name) {
  const auto found = std::ranges::find_if(
      checks, [&](const Check& c) { return c.name == name && c.violations > 0; });
  return found == checks.end() ? nullptr : &*found;
}

class FieldScenarios : public testing::TestWithParam<FieldScenario> {};

TEST_P(FieldScenarios, TheStandInIsRefusedByTheCheckNamedForIt) {
  const auto checks = field_checks(GetParam(), FieldSide::stand_in);
  const FieldResult result = judge_scenario(GetParam(), checks, checks);
  EXPECT_EQ(result.stand_in.verdict.status, Status::passed) << result.stand_in.verdict.reason;
  const Check* refusal = find(checks, GetParam().caught_by);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->status, Status::failed);
  EXPECT_EQ(refusal->reason, result.refusal);
}

TEST_P(FieldScenarios, OursPassesTheSameChecks) {
  const auto checks = field_checks(GetParam(), FieldSide::ours);
  const FieldResult result = judge_scenario(GetParam(), checks, checks);
  EXPECT_EQ(result.ours.verdict.status, Status::passed) << result.ours.verdict.reason;
  EXPECT_EQ(find(checks, GetParam().caught_by), nullptr);
  const bool looked = std::ranges::any_of(checks, [](const Check& check) {
    return check.name == GetParam().caught_by && check.compared > 0;
  });
  EXPECT_TRUE(looked) << GetParam().caught_by;
}

INSTANTIATE_TEST_SUITE_P(All, FieldScenarios, testing::ValuesIn(suite().scenarios),
                         [](const auto& tested) { return tested.param.id; });

std::int64_t violations_of(const std::string& id) {
  const FieldScenario& scenario = find_scenario(suite(), id);
  const auto checks = field_checks(scenario, FieldSide::stand_in);
  const Check* refusal = find(checks, scenario.caught_by);
  return refusal == nullptr ? 0 : refusal->violations;
}

TEST(FieldNumbers, AreThoseOfTheReports) {
  EXPECT_EQ(violations_of("blocks_read_as_pages"), 4096 - 864);      // vllm-project/vllm#54359
  EXPECT_EQ(violations_of("table_width_in_blocks"), 40160 - 13120);  // tokens 52,480 on
  EXPECT_EQ(violations_of("shared_layers_select_alone"), 57);
  EXPECT_EQ(violations_of("index_table_too_narrow"), 3);
}

TEST(FieldSuite, HasARowOfCodeForEveryRowOfTheFileAndTheOtherWayRound) {
  std::set<std::string> written, coded;
  for (const FieldScenario& scenario : suite().scenarios) written.insert(scenario.id);
  for (const std::string_view id : field_ids()) EXPECT_TRUE(coded.emplace(id).second) << id;
  EXPECT_EQ(written, coded);
  EXPECT_GE(written.size(), 35u);
}

TEST(FieldSuite, CitesPublicThreadsAndSaysWhatIsLeftOut) {
  const std::regex thread(R"([\w.-]+/[\w.-]+#\d+)");
  const auto expect_threads = [&](const std::vector<std::string>& references) {
    EXPECT_FALSE(references.empty());
    for (const std::string& each : references) EXPECT_TRUE(std::regex_match(each, thread)) << each;
  };
  std::set<std::string> kinds;
  for (const FieldScenario& scenario : suite().scenarios) {
    expect_threads(scenario.references);
    kinds.insert(scenario.kind);
    for (const std::string& text :
         {scenario.symptom, scenario.cause, scenario.right, scenario.stand_in}) {
      EXPECT_GT(text.size(), 10u) << scenario.id;
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"kernel", "memory plan", "page table", "planner"}));
  EXPECT_FALSE(suite().not_represented.empty());
  for (const FieldOmission& omission : suite().not_represented) {
    expect_threads(omission.references);
    EXPECT_GT(omission.why.size(), 20u);
  }
}

TEST(FieldSuite, NamesNearScenariosForAnUnknownOne) {
  try {
    find_scenario(suite(), "relu_mising");
    FAIL() << "found";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("relu_missing"), std::string::npos) << error.what();
  }
}

std::string error_of(const std::string& text) {
  try {
    parse_field_suite(text, "mine.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string file_with(const std::string& rows) {
  return R"({"name": "n", "why": "w", "not_represented": [], "scenarios": [)" + rows + "]}";
}

std::string row_with(const std::string& kind, const std::string& references) {
  return R"({"id": "a", "kind": ")" + kind + R"(", "op": "plan", "references": )" + references +
         R"(, "symptom": "s", "cause": "c", "right": "r", "stand_in": "i", "caught_by": "b"})";
}

TEST(FieldSuite, BadFilesAreRefusedByPlace) {
  const std::string good = row_with("planner", R"(["a/b#1"])");
  EXPECT_EQ(error_of(file_with(good)), "");
  EXPECT_NE(error_of(file_with(row_with("plan", R"(["a/b#1"])"))).find("/scenarios/0/kind"),
            std::string::npos);
  EXPECT_NE(error_of(file_with(row_with("planner", "[]"))).find("/scenarios/0/references"),
            std::string::npos);
  EXPECT_NE(error_of(file_with(good + ", " + good)).find("/scenarios/1"), std::string::npos);
  EXPECT_NE(error_of(R"({"name": "n"})").find("mine.json"), std::string::npos);
}

TEST(FieldSuite, AScenarioWithoutCodeIsAnError) {
  FieldScenario scenario = suite().scenarios.front();
  scenario.id = "unknown";
  EXPECT_THROW(field_checks(scenario, FieldSide::ours), ConfigError);
}

}  // namespace
}  // namespace indexpool::verify
