// SARIF as the standard (OASIS, SARIF 2.1.0) and code hosts want it; places in the source.
#include "indexpool/reports/sarif.hpp"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "sample.hpp"

namespace indexpool::reports {
namespace {

using Json = nlohmann::json;

// What sections 3.13 to 3.54 of the standard require of what we write. Empty: all there.
std::string structure_problem(const Json& log) {
  if (log.at("version") != "2.1.0") return "3.13.2: version";
  if (!log.at("$schema").get<std::string>().ends_with("sarif-2.1.0.json")) return "3.13.3: $schema";
  if (!log.at("runs").is_array() || log["runs"].size() != 1) return "3.13.4: runs";
  const Json& run = log["runs"][0];
  const Json& driver = run.at("tool").at("driver");
  if (driver.at("name").get<std::string>().empty()) return "3.19.8: name";
  std::set<std::string> ids;
  for (const Json& rule : driver.at("rules")) {
    if (!ids.insert(rule.at("id").get<std::string>()).second) return "3.19.23: ids are unique";
    if (rule.at("shortDescription").at("text").get<std::string>().empty()) return "3.49.9";
  }
  for (const Json& invocation : run.at("invocations")) {
    if (!invocation.at("executionSuccessful").is_boolean()) return "3.20.14: executionSuccessful";
  }
  for (const Json& result : run.at("results")) {
    const auto index = result.at("ruleIndex").get<std::size_t>();
    if (index >= driver["rules"].size()) return "3.27.6: ruleIndex out of range";
    if (driver["rules"][index]["id"] != result.at("ruleId")) return "3.27.5: ruleId";
    const std::set<std::string> levels = {"none", "note", "warning", "error"};
    if (!levels.contains(result.at("level").get<std::string>())) return "3.27.10: level";
    if (result.at("message").at("text").get<std::string>().empty()) return "3.11.8: text";
    if (!result.contains("locations")) continue;
    for (const Json& location : result["locations"]) {
      const Json& physical = location.at("physicalLocation");
      const auto uri = physical.at("artifactLocation").at("uri").get<std::string>();
      if (uri.empty() || uri[0] == '/' || uri.find(':') != std::string::npos ||
          uri.find("..") == 0 || uri.find_first_of(" \\<>\"") != std::string::npos) {
        return "3.4.3: a relative URI, found " + uri;
      }
      const auto base = physical["artifactLocation"].at("uriBaseId").get<std::string>();
      if (!run.at("originalUriBaseIds").contains(base)) return "3.14.14: " + base;
      if (physical.at("region").at("startLine").get<int>() < 1) return "3.30.5: startLine";
    }
  }
  return "";
}

Sources sources() { return {"/home/me/project", {{"pool", "kernels/pool.cuh"}}, "mine/kernel.py"}; }

Record broken(const std::string& reason) {
  Record record = passed_records()[0];
  record.verdict.status = Status::error;
  record.verdict.checks.clear();
  record.verdict.reason = reason;
  return record;
}

TEST(Sarif, HasTheStructureTheStandardRequires) {
  for (const auto& records : {passed_records(), mixed_records(), hostile_records()}) {
    const auto findings = record_findings(records, sources());
    const Json log = Json::parse(sarif(findings, "0.1.0", "indexpool gate"));
    EXPECT_EQ(structure_problem(log), "") << log.dump(1);
    EXPECT_EQ(log["runs"][0]["results"].size(), findings.size());
  }
  EXPECT_EQ(record_findings(passed_records(), sources()).size(), 0u);
}

TEST(Sarif, ItsReaderSeesWhatIsMissing) {
  Json log = Json::parse(sarif(record_findings(mixed_records(), sources()), "0.1.0", ""));
  ASSERT_GE(log["runs"][0]["results"].size(), 3u);
  Json other = log;
  other["runs"][0]["results"][0]["ruleIndex"] = 99;
  EXPECT_NE(structure_problem(other), "");
  other = log;
  other["runs"][0]["results"][0]["level"] = "fatal";
  EXPECT_NE(structure_problem(other), "");
  other = log;
  other["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] =
      "/etc/passwd";
  EXPECT_NE(structure_problem(other), "");
}

TEST(Sarif, AnExecutorErrorPointsToItsLine) {
  const auto findings = record_findings(
      {broken("divergent_barrier: /tmp/b/include/indexpool/kernels/topk_select.cuh:88: "
              "divergent_barrier: 3 of 32 threads wait (block 0, thread 3)")},
      sources());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "executor/divergent_barrier");
  EXPECT_EQ(findings[0].level, "error");
  EXPECT_EQ(findings[0].place.file, "kernels/topk_select.cuh");
  EXPECT_EQ(findings[0].place.line, 88);
}

TEST(Sarif, AFailedCheckPointsToItsKernelsSource) {
  std::vector<Record> records = {passed_records()[0]};
  records[0].verdict.status = Status::failed;
  records[0].verdict.checks[0].status = Status::failed;
  records[0].verdict.checks[0].reason = "pool 3, channel 5: 2, expected 0.5 to 0.6";
  auto findings = record_findings(records, sources());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "check/bound");
  EXPECT_EQ(findings[0].place.file, "kernels/pool.cuh");
  EXPECT_EQ(findings[0].repeat, records[0].repeat);
  records[0].implementation = "foreign";
  findings = record_findings(records, sources());
  EXPECT_EQ(findings[0].place.file, "mine/kernel.py");
  Sources nowhere = sources();
  nowhere.otherwise.clear();
  findings = record_findings(records, nowhere);
  EXPECT_EQ(findings[0].place.file, "");
  EXPECT_EQ(structure_problem(Json::parse(sarif(findings, "0.1.0", ""))), "");
}

TEST(Sarif, UntrustedIsAWarning) {
  std::vector<Record> records = {broken("vacuous")};
  records[0].verdict.status = Status::untrusted;
  const auto findings = record_findings(records, sources());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, "warning");
}

TEST(Sarif, HoldsFiveThousandResultsAndSaysHowManyAreMissing) {
  const std::vector<Record> records(5'123, broken("out_of_bounds: kernels/pool.cuh:7: far"));
  const Json log = Json::parse(sarif(record_findings(records, sources()), "0.1.0", ""));
  EXPECT_EQ(log["runs"][0]["results"].size(), 5000u);
  const auto note =
      log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
          .get<std::string>();
  EXPECT_NE(note.find("123 more"), std::string::npos) << note;
}

TEST(Sarif, TheFingerprintFollowsTheFindingNotItsPlaceInTheList) {
  std::vector<Finding> findings = record_findings(mixed_records(), sources());
  ASSERT_GE(findings.size(), 2u);
  const auto prints = [](const std::vector<Finding>& all) {
    std::multiset<std::string> found;
    const Json document = Json::parse(sarif(all, "0.1.0", ""));
    for (const Json& result : document["runs"][0]["results"]) {
      found.insert(result["partialFingerprints"]["indexpool/v1"].get<std::string>());
    }
    return found;
  };
  const auto before = prints(findings);
  std::reverse(findings.begin(), findings.end());
  EXPECT_EQ(prints(findings), before);
  EXPECT_EQ(std::set<std::string>(before.begin(), before.end()).size(), before.size());
}

TEST(RelativeUri, StaysInsideTheRootAndIsEncoded) {
  EXPECT_EQ(relative_uri("/home/me/project/a b/k.cu", "/home/me/project"), "a%20b/k.cu");
  EXPECT_EQ(relative_uri("kernels/pool.cuh", "/home/me/project"), "kernels/pool.cuh");
  EXPECT_EQ(relative_uri("./x/../kernels/pool.cuh", "/r"), "kernels/pool.cuh");
  EXPECT_EQ(relative_uri("/elsewhere/k.cu", "/home/me/project"), "k.cu");
  EXPECT_EQ(relative_uri("../../k.cu", "/home/me/project"), "k.cu");
  EXPECT_TRUE(rc::check("any path gives a relative URI", [] {
    const auto text = *rc::gen::nonEmpty(rc::gen::string<std::string>());
    RC_PRE(text.find('\0') == std::string::npos);
    const std::string uri = relative_uri(text, "/home/me/project");
    RC_ASSERT(uri.empty() || uri[0] != '/');
    RC_ASSERT(uri.rfind("../", 0) != 0);
    RC_ASSERT(uri.find(':') == std::string::npos);
  }));
}

TEST(PlaceIn, FindsFileAndLineAndNothingElse) {
  EXPECT_EQ(place_in("race: kernels/a.cuh:12: text").file, "kernels/a.cuh");
  EXPECT_EQ(place_in("race: kernels/a.cuh:12: text").line, 12);
  EXPECT_EQ(place_in("see (mine/k.py:3)").file, "mine/k.py");
  for (const char* none :
       {"", ":", "bound: token 3: 0.5", "pool 3:12", "a.b", "1.5:3", "x.:3", "kernels/a.cuh: 12"}) {
    EXPECT_EQ(place_in(none).file, "") << none;
  }
}

TEST(Annotations, AreAtMostTenOfALevelAndOneLineEach) {
  Finding wrong;
  wrong.rule = "check/bound";
  wrong.level = "error";
  wrong.message = "100% wrong\nsecond line";
  wrong.place = {"a,b.cu", 3};
  std::vector<Finding> findings(30, wrong);
  wrong.level = "note";
  wrong.message = "small";
  wrong.place = {};
  findings.push_back(wrong);
  const std::string text = annotations(findings);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_EQ(text.find("::error file=a%2Cb.cu,line=3,title=indexpool check/bound::100%25 wrong%0A"),
            0u)
      << text;
  EXPECT_NE(text.find("::notice title=indexpool check/bound::small"), std::string::npos) << text;
}

TEST(GateFindings, NameTheGateAndLeaveVerdictsToTheRecords) {
  Gate gate;
  gate.findings = {{Aspect::traffic, Change::regression, "pool", "pool", "shuffles", "1", "2",
                    "shuffles rose", "", ""},
                   {Aspect::verdicts, Change::regression, "pool", "pool", "verdict", "passed",
                    "failed", "it failed", "", ""},
                   {Aspect::verdicts, Change::regression, "pool", "pool", "verdict", "passed",
                    "skipped", "it was skipped", "", ""},
                   {Aspect::traffic, Change::improvement, "pool", "pool", "shuffles", "2", "1",
                    "shuffles fell", "", ""}};
  const auto findings = gate_findings(gate, sources());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rule, "gate/traffic");
  EXPECT_EQ(findings[0].place.file, "kernels/pool.cuh");
  EXPECT_EQ(findings[1].message, "it was skipped");
}

}  // namespace
}  // namespace indexpool::reports
