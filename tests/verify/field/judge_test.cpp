// When a scenario counts as shown, and that stand-ins without their fault are right.
#include <gtest/gtest.h>

#include "indexpool/verify/field/field.hpp"
#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/field/trial.hpp"

namespace indexpool::verify {
namespace {

FieldScenario scenario() {
  FieldScenario made;
  made.id = "made";
  made.op = "plan";
  made.references = {"a/b#1"};
  made.caught_by = "slots";
  return made;
}

Check check(const std::string& name, bool held, const std::string& reason = "pool 3 has slot 7") {
  Check made;
  made.name = name;
  made.compared = 5;
  if (held) return made;
  made.status = Status::failed;
  made.reason = reason;
  made.violations = 1;
  return made;
}

TEST(Judge, PassesWhenTheNamedCheckRefusesTheStandInAndOursHolds) {
  const FieldResult result =
      judge_scenario(scenario(), {check("slots", false)}, {check("slots", true)});
  EXPECT_TRUE(result.passed());
  EXPECT_EQ(result.refusal, "pool 3 has slot 7");
  EXPECT_EQ(result.stand_in.verdict.checks.at(0).reason, "slots: pool 3 has slot 7");
  EXPECT_EQ(result.stand_in.case_name, "made");
  EXPECT_EQ(result.stand_in.reference, "a/b#1");
  EXPECT_EQ(result.ours.repeat, "indexpool field --id made");
}

TEST(Judge, FailsWhenNothingRefusesTheStandIn) {
  const FieldResult result =
      judge_scenario(scenario(), {check("slots", true)}, {check("slots", true)});
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.stand_in.verdict.status, Status::failed);
  EXPECT_NE(result.stand_in.verdict.reason.find("no other did"), std::string::npos);
}

TEST(Judge, FailsWhenOnlyAnotherCheckRefusesTheStandIn) {
  const FieldResult result = judge_scenario(
      scenario(), {check("slots", true), check("reach", false)}, {check("slots", true)});
  EXPECT_FALSE(result.passed());
  EXPECT_NE(result.stand_in.verdict.reason.find("refused by reach"), std::string::npos);
}

TEST(Judge, FailsWhenTheRefusalNamesNoPlace) {
  const FieldResult result =
      judge_scenario(scenario(), {check("slots", false, "wrong")}, {check("slots", true)});
  EXPECT_FALSE(result.passed());
  EXPECT_NE(result.stand_in.verdict.reason.find("names no place"), std::string::npos);
}

TEST(Judge, FailsWhenAnyCheckRefusesOurs) {
  const FieldResult result = judge_scenario(scenario(), {check("slots", false)},
                                            {check("slots", true), check("reach", false)});
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.ours.verdict.status, Status::failed);
}

TEST(Judge, FailsWhenTheNamedCheckDidNotLookAtOurs) {
  Check idle = check("slots", true);
  idle.compared = 0;
  EXPECT_FALSE(judge_scenario(scenario(), {check("slots", false)}, {idle}).passed());
  EXPECT_FALSE(
      judge_scenario(scenario(), {check("slots", false)}, {check("reach", true)}).passed());
}

TEST(Judge, RecordsSurviveTheirFile) {
  const FieldResult result =
      judge_scenario(scenario(), {check("slots", false)}, {check("slots", true)});
  for (const Record& record : {result.stand_in, result.ours})
    EXPECT_EQ(record_from_json(to_json_line(record), "line"), record);
}

void expect_all_hold(const std::vector<Check>& checks) {
  EXPECT_FALSE(checks.empty());
  for (const Check& each : checks) EXPECT_NE(each.status, Status::failed) << each.reason;
}

// What the scenarios refuse is the fault, not how a stand-in is made.
TEST(StandIns, OfLogitsAreRightWithoutTheirFault) {
  for (const char* mode : {"vllm_fp8", "hf_f32"}) {
    Problem problem = small_problem({45, 7});
    problem.mode = mode;
    expect_all_hold(try_operation(problem, Op::logits, &logits_stand_in(LogitsFault::none)));
  }
}

TEST(StandIns, OfTopkAreRightWithoutTheirFault) {
  for (const char* fill : {"normal", "ties", "relu_plateau"}) {
    Problem problem = small_problem({77, 9});
    problem.fill = fill;
    expect_all_hold(try_operation(problem, Op::topk, &topk_stand_in(TopkFault::none), true));
  }
}

TEST(Trials, OfOurCacheHoldInEverySchedule) {
  for (const std::int64_t drafts : {0, 1, 4}) {
    CacheTrial trial{small_problem({29, 3, 14})};
    trial.problem.schedule = {6, 4, drafts};
    expect_all_hold(try_cache(trial));
  }
}

}  // namespace
}  // namespace indexpool::verify
