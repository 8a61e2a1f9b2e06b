// The gate as CI calls it: exit codes, files, and what was planted.
#include <fstream>
#include <functional>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

using Json = nlohmann::json;

// Two problems, a fraction of a second.
constexpr const char* suite = R"({"name": "two", "why": "a test", "cases": [
  {"mode": ["vllm_fp8", "hf_f32"], "heads": [2], "head_dim": [32], "topk": [8],
   "lengths": [[21]], "prefill": [17]}]})";

class Gate : public testing::Test {
 protected:
  Gate() {
    std::ofstream(folder.file("two.json")) << suite;
    const Outcome made = gate({"--update-baseline"});
    EXPECT_EQ(made.code, 0) << made.err;
  }

  Outcome gate(std::vector<std::string> more) const {
    std::vector<std::string> line = {"gate", "--suite", folder.file("two.json"), "--baseline",
                                     baseline};
    line.insert(line.end(), more.begin(), more.end());
    return indexpool(line);
  }

  // What the gate says once the baseline was changed; the file must stay as it is then.
  Outcome with(const std::function<void(Json&)>& change) const {
    Json file = Json::parse(read_text(baseline));
    change(file);
    const std::string text = file.dump();
    std::ofstream(baseline, std::ios::trunc) << text;
    const Outcome outcome = gate({});
    EXPECT_EQ(read_text(baseline), text) << "written without --update-baseline";
    return outcome;
  }

  Folder folder;
  std::string baseline = folder.file("baseline.json");
};

void expect_shut(const Outcome& outcome, const std::vector<const char*>& parts) {
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  for (const char* part : parts) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST_F(Gate, IsOpenForTheRunItWasMadeFrom) {
  const Outcome outcome = gate({});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "The gate is open")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "registers, spills and shared memory are of")) << outcome.out;
}

TEST_F(Gate, IsShutByAWorseCounter) {
  expect_shut(with([](Json& file) {
                for (Json& entry : file["entries"]) {
                  if (entry["op"] == "topk") entry["traffic"][9] = 1;
                }
              }),
              {"traffic: topk / topk on simt: shuffles rose in 2 of 2 problems", ": 1, now",
               "repeat: indexpool verify"});
}

TEST_F(Gate, IsShutByALostRecord) {
  expect_shut(with([](Json& file) {
                Json lost = file["entries"][0];
                lost["kernel"] = "logits_wgmma";
                file["entries"].push_back(lost);
              }),
              {"coverage", "logits_wgmma on simt", "this run has none"});
}

TEST_F(Gate, IsShutByALostCheck) {
  expect_shut(with([](Json& file) {
                Json lost = file["checks"][0];
                lost["check"] = "parity";
                file["checks"].push_back(lost);
              }),
              {"coverage", "check parity compared something in 1 problems", "now in 0"});
}

TEST_F(Gate, IsShutByUtilisationThatDoubled) {
  expect_shut(with([](Json& file) {
                for (Json& check : file["checks"]) {
                  if (check["check"] != "bound" || !check.contains("worst")) continue;
                  check["worst"] = check["worst"].get<double>() / 2.1;
                }
              }),
              {"utilisation: pool / pool on simt, mode hf_f32: check bound: the worst error",
               "was 0.", ", now it is 0."});
}

TEST_F(Gate, IsShutByMoreRegisters) {
  expect_shut(with([](Json& file) {
                for (Json& kernel : file["resources"]["kernels"]) {
                  if (kernel["kernel"] == "topk_row") kernel["registers"] = 8;
                }
              }),
              {"resources: topk_row for sm_80: registers were 8, now"});
}

TEST_F(Gate, IsShutByALowerKillScore) {
  const auto scores = [&](int killed) {
    std::ofstream(folder.file("scores.json"))
        << R"([{"class":"sync","mutants":12,"equivalent":2,"killed_by_its_check":)" << killed
        << R"(,"killed":10,"percent":0}])";
  };
  scores(10);
  EXPECT_EQ(gate({"--mutants", folder.file("scores.json"), "--update-baseline"}).code, 0);
  EXPECT_EQ(gate({"--mutants", folder.file("scores.json")}).code, 0);
  const Outcome without = gate({});
  EXPECT_EQ(without.code, 0);
  EXPECT_TRUE(contains(without.out, "the kill score was not compared")) << without.out;
  scores(9);
  expect_shut(gate({"--mutants", folder.file("scores.json")}),
              {"kill_score: mutants: sync: 10 of 10 were killed", "now 9 of 10"});
}

// A run whose first check of the first logits record failed at a line of the kernel.
class FailedRun : public Gate {
 protected:
  FailedRun() {
    EXPECT_EQ(gate({"--out", folder.file("good")}).code, 0);
    records = folder.file("records.jsonl");
    mine = folder.file("mine.json");
    std::filesystem::copy(folder.file("good") + "/records.jsonl", records);
    EXPECT_EQ(on_records({"--update-baseline"}).code, 0);
    std::istringstream lines(read_text(records));
    std::ofstream out(records, std::ios::trunc);
    bool done = false;
    for (std::string line; std::getline(lines, line);) {
      Json record = Json::parse(line);
      if (!done && record["op"] == "logits") {
        done = true;
        record["verdict"]["status"] = "error";
        record["verdict"]["reason"] =
            "out_of_bounds: kernels/logits_fma.cuh:42: out_of_bounds: 4 bytes too far";
        record["verdict"]["checks"] = Json::array();
      }
      out << record.dump() << "\n";
    }
  }
  Outcome on_records(std::vector<std::string> more) const {
    std::vector<std::string> line = {"gate", "--records", records, "--baseline", mine};
    line.insert(line.end(), more.begin(), more.end());
    return indexpool(line);
  }
  std::string records, mine;
};

TEST_F(FailedRun, ShutsTheGateAndSaysWhere) {
  expect_shut(on_records({}), {"verdicts: logits / ", "was passed, now it is error", "cuh:42"});
}

TEST_F(FailedRun, IsNoBaseline) {
  const std::string before = read_text(mine);
  const Outcome outcome = on_records({"--update-baseline"});
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "was not written")) << outcome.err;
  EXPECT_EQ(read_text(mine), before);
}

TEST_F(FailedRun, PointsToTheLineInSarifAndAnnotations) {
  const Outcome outcome = on_records({"--annotations", "--out", folder.file("bad")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.out,
                       "::error file=kernels/logits_fma.cuh,line=42,title=indexpool "
                       "executor/out_of_bounds::"))
      << outcome.out;
  const Json sarif = Json::parse(read_text(folder.file("bad") + "/gate.sarif"));
  const Json& result = sarif["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "executor/out_of_bounds");
  const Json& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "kernels/logits_fma.cuh");
  EXPECT_EQ(place["region"]["startLine"], 42);
  EXPECT_TRUE(contains(read_text(folder.file("bad") + "/gate.md"), "The gate is shut"));
  EXPECT_TRUE(contains(read_text(folder.file("bad") + "/junit.xml"), "gate.verdicts.records"));
  EXPECT_FALSE(contains(on_records({}).out, "::error")) << "only when asked for";
}

TEST_F(Gate, ShowsTheDifferenceBeforeItWritesTheBaseline) {
  const std::string right = read_text(baseline);
  std::string other = right;
  other = std::regex_replace(other, std::regex("\"problems\": 1,"), "\"problems\": 2,",
                             std::regex_constants::format_first_only);
  ASSERT_NE(other, right);
  std::ofstream(baseline, std::ios::trunc) << other;
  const Outcome outcome = gate({"--update-baseline"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1 lines removed, 1 added")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "\n+ {\"op\"")) << outcome.out;
  EXPECT_EQ(read_text(baseline), right);
  EXPECT_EQ(gate({"--update-baseline"}).out, "the baseline is up to date\n");
}

TEST_F(Gate, RefusesWhatItCannotCompare) {
  struct Row {
    std::vector<std::string> line;
    const char* said;
  };
  std::ofstream(folder.file("broken.json")) << "{\"format\": 1";
  for (const Row& row :
       {Row{{"gate"}, "--baseline is required"},
        Row{{"gate", "--baseline", folder.file("no.json")}, "--update-baseline writes it"},
        Row{{"gate", "--baseline", folder.file("broken.json")}, "broken.json"},
        Row{{"gate", "--baseline", baseline, "--suite", "smoke"}, "this run of 'smoke'"},
        Row{{"gate", "--baseline", baseline, "--suite", "a", "--records", "b"}, "exclude"},
        Row{{"gate", "--baseline", baseline, "--annotations", "--format", "csv"}, "--format table"},
        Row{{"gate", "--baseline", baseline, "--targt", "simt"}, "did you mean --target"}}) {
    const Outcome outcome = indexpool(row.line);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_TRUE(contains(outcome.err, row.said)) << outcome.err;
  }
}

TEST_F(Gate, NothingToCompareIsUntrusted) {
  const Outcome outcome = with([](Json& file) {
    file["entries"] = Json::array();
    file["checks"] = Json::array();
    file.erase("resources");
  });
  EXPECT_EQ(outcome.code, 4) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "Nothing was compared")) << outcome.out;
}

TEST(CheckedInBaseline, HoldsForTheSmokeSuite) {
  const Outcome outcome = indexpool({"gate", "--suite", "smoke", "--baseline",
                                     INDEXPOOL_SOURCE_DIR "/reports/baselines/smoke.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Utilisation, ACampaignIsTheSameOnAnyNumberOfThreadsAndReadsBack) {
  const Folder folder;
  const std::vector<std::string> line = {"utilisation", "--runs", "12", "--out"};
  const auto run = [&](const std::string& name, const char* jobs) {
    std::vector<std::string> words = line;
    words.insert(words.end(), {folder.file(name), "--jobs", jobs});
    const Outcome outcome = indexpool(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string first = run("a.jsonl", "1");
  EXPECT_EQ(run("b.jsonl", "3"), first);
  EXPECT_EQ(read_text(folder.file("a.jsonl")), read_text(folder.file("b.jsonl")));
  EXPECT_TRUE(contains(first, "logits")) << first;
  EXPECT_EQ(indexpool({"utilisation", folder.file("a.jsonl")}).out, first);
  EXPECT_EQ(indexpool({"utilisation"}).code, 2);
}

TEST(Utilisation, TheRecordedCampaignHasTenThousandRunsWithoutAnAlarmAndNoLooseBound) {
  const std::string file = INDEXPOOL_SOURCE_DIR "/reports/results/utilisation.jsonl";
  const Outcome outcome = indexpool({"utilisation", file, "--format", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_GE(rows.size(), 12u);
  EXPECT_EQ(rows[0]["of"], "all");
  for (const Json& row : rows) {
    EXPECT_LE(row["worst"], 1) << row;
    EXPECT_GE(row["worst"], 1e-3) << row;
  }
  const Outcome text = indexpool({"utilisation", file, "--format", "md"});
  EXPECT_TRUE(contains(text.out, "No check is loose: in 10 000 runs")) << text.out;
}

}  // namespace
}  // namespace indexpool::cli
