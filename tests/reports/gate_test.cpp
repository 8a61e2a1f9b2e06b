// The gate: what was planted is found, what is noise is not.
#include "indexpool/reports/gate.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/report.hpp"

#include "markup.hpp"

namespace indexpool::reports {
namespace {

Record record_of(const std::string& problem, double utilisation) {
  Record record;
  record.case_name = problem;
  record.op = "logits";
  record.implementation = "logits_mma";
  record.environment.target = "simt";
  record.problem.emplace();
  record.problem->mode = "bf16";
  record.verdict.status = Status::passed;
  record.verdict.checks = {{"bound", Status::passed, "", utilisation, 500, 0},
                           {"rerun", Status::passed, "", 0, 2000, 0}};
  record.verdict.worst_utilisation = utilisation;
  record.counted.emplace();
  record.counted->global_load = Bytes(4096);
  record.counted->load_sectors = 128;
  record.counted->shuffles = 10;
  record.declared = record.counted;
  record.repeat = "indexpool verify --lengths " + problem;
  return record;
}

std::vector<Record> run() {
  std::vector<Record> records;
  for (int i = 0; i < 8; ++i) records.push_back(record_of(std::to_string(i), 0.01 * (i + 1)));
  return records;
}

Gate against(const std::vector<Record>& before, const std::vector<Record>& after) {
  return compare(gate_state("ci", before), gate_state("ci", after));
}

std::vector<GateFinding> regressions(const Gate& gate) {
  std::vector<GateFinding> found;
  std::copy_if(gate.findings.begin(), gate.findings.end(), std::back_inserter(found),
               [](const GateFinding& finding) { return finding.change == Change::regression; });
  return found;
}

// The one regression, whose sentence has all of `parts`.
void expect_one(const Gate& gate, Aspect aspect, const std::vector<std::string>& parts) {
  EXPECT_FALSE(passed(gate));
  const auto found = regressions(gate);
  ASSERT_EQ(found.size(), 1u) << gate_text(gate, "ci.json", 20);
  EXPECT_EQ(found[0].aspect, aspect);
  for (const std::string& part : parts) {
    EXPECT_NE(found[0].sentence.find(part), std::string::npos) << part << " in\n"
                                                               << found[0].sentence;
  }
}

TEST(Gate, TheSameRunPasses) {
  const Gate gate = against(run(), run());
  EXPECT_TRUE(passed(gate));
  EXPECT_TRUE(gate.findings.empty()) << gate_text(gate, "ci.json", 20);
  EXPECT_EQ(gate.compared.at(Aspect::verdicts), 8);
  EXPECT_EQ(gate.compared.at(Aspect::traffic), 8);
}

TEST(Gate, ADoubledCounterFails) {
  std::vector<Record> now = run();
  now[3].counted->load_sectors *= 2;
  expect_one(against(run(), now), Aspect::traffic,
             {"logits / logits_mma on simt", "sectors loaded", "1 of 8", "in 3: 128, now 256"});
}

TEST(Gate, EveryCounterIsLookedAt) {
  EXPECT_TRUE(rc::check("one more of anything fails, one less of anything is better", [] {
    const auto which = *rc::gen::inRange<std::size_t>(0, counter_count);
    const auto where = *rc::gen::inRange<std::size_t>(0, 8);
    GateState before = gate_state("ci", run());
    for (GateEntry& entry : before.entries) entry.traffic->fill(100);
    GateState more = before;
    const auto by = *rc::gen::inRange<std::int64_t>(1, 1000);
    (*more.entries[where].traffic)[which] += by;
    RC_ASSERT(!passed(compare(before, more)));
    RC_ASSERT(passed(compare(more, before)));
    RC_ASSERT(compare(more, before).findings.size() == 1u);
    RC_ASSERT(compare(more, before).findings[0].change == Change::improvement);
  }));
}

TEST(Gate, TrafficThatIsNoLongerCountedFails) {
  std::vector<Record> now = run();
  now[3].counted.reset();
  now[3].declared.reset();
  expect_one(against(run(), now), Aspect::traffic, {"logits_mma", ", 3:", "counted"});
}

TEST(Gate, ALostRecordFailsOnce) {
  std::vector<Record> now = run();
  now.erase(now.begin() + 5);
  expect_one(against(run(), now), Aspect::coverage,
             {"logits / logits_mma on simt, 5", "passed", "this run has none"});
}

TEST(Gate, ALostCheckFails) {
  std::vector<Record> now = run();
  now[2].verdict.checks.pop_back();
  expect_one(against(run(), now), Aspect::coverage,
             {"mode bf16: check rerun", "8 problems", "now in 7"});
  for (Record& record : now) {
    record.verdict.checks.resize(1);
  }
  expect_one(against(run(), now), Aspect::coverage, {"check rerun", "8 problems", "now in 0"});
}

TEST(Gate, ACheckThatComparesNothingFails) {
  std::vector<Record> now = run();
  now[2].verdict.checks[1] = {"rerun", Status::skipped, "there was nothing to compare", 0, 0, 0};
  expect_one(against(run(), now), Aspect::coverage, {"check rerun", "now in 7"});
}

TEST(Gate, DoubledUtilisationFails) {
  std::vector<Record> now = run();
  now[7].verdict.checks[0].utilisation = 0.17;  // was 0.08
  expect_one(against(run(), now), Aspect::utilisation,
             {"mode bf16: check bound", "worst", "was 0.08, now it is 0.17", "in 7"});
}

TEST(Gate, UtilisationThatDoublesInMostProblemsFailsThoughTheWorstStays) {
  std::vector<Record> now = run();
  for (int i = 0; i < 7; ++i) now[static_cast<std::size_t>(i)].verdict.checks[0].utilisation = 0.08;
  expect_one(against(run(), now), Aspect::utilisation, {"median", "was 0.04, now it is 0.08"});
}

TEST(Gate, UtilisationBelowTheFloorIsNoise) {
  EXPECT_TRUE(rc::check("whatever happens under twice the floor passes", [] {
    const auto tiny = [] {
      return *rc::gen::inRange(0, 1000) * 1e-3 * utilisation_factor * utilisation_floor;
    };
    std::vector<Record> before = run(), after = run();
    for (Record& record : before) record.verdict.checks[0].utilisation = tiny();
    for (Record& record : after) record.verdict.checks[0].utilisation = tiny();
    RC_ASSERT(passed(against(before, after)));
  }));
  std::vector<Record> before = {record_of("1", 1e-6)}, after = {record_of("1", 2e-6)};
  EXPECT_TRUE(against(before, after).findings.empty());
  after[0].verdict.checks[0].utilisation = 0.01;
  EXPECT_FALSE(passed(against(before, after)));
}

TEST(Gate, AFailedVerdictFailsWhateverTheBaselineSays) {
  for (const Status status : {Status::failed, Status::error}) {
    std::vector<Record> now = run();
    now[4].verdict.status = status;
    now[4].verdict.reason = "bound: token 3, pool 1: 2, expected 0.5 to 0.6";
    expect_one(against(run(), now), Aspect::verdicts,
               {"logits / logits_mma on simt, 4", "was passed", std::string(to_string(status)),
                "token 3, pool 1"});
    EXPECT_FALSE(passed(against(now, now)));
  }
}

TEST(Gate, AVerdictThatNoLongerSaysAnythingFails) {
  for (const Status status : {Status::untrusted, Status::unsupported, Status::skipped}) {
    std::vector<Record> now = run();
    now[4].verdict.status = status;
    expect_one(against(run(), now), Aspect::verdicts, {std::string(to_string(status))});
    EXPECT_TRUE(passed(against(now, now))) << "it was so before";
    const Gate back = against(now, run());
    EXPECT_TRUE(passed(back));
    ASSERT_EQ(back.findings.size(), 1u);
    EXPECT_EQ(back.findings[0].change, Change::improvement);
  }
}

TEST(Gate, ANewRecordIsReportedAndPassesUnlessItFailed) {
  std::vector<Record> now = run();
  now.push_back(record_of("new", 0.01));
  const Gate gate = against(run(), now);
  EXPECT_TRUE(passed(gate));
  ASSERT_EQ(gate.findings.size(), 1u);
  EXPECT_EQ(gate.findings[0].change, Change::fresh);
  now.back().verdict.status = Status::failed;
  EXPECT_FALSE(passed(against(run(), now)));
}

TEST(Gate, TwoRecordsOfOneProblemAreRefused) {
  std::vector<Record> twice = run();
  twice.push_back(twice[0]);
  EXPECT_THROW(gate_state("ci", twice), ConfigError);
}

Resources table() {
  return {
      "13.0", {{"pool_kernel", "sm_80", 42, 148, 0, 0}, {"topk_row", "sm_80", 2, 63, 0, 0}}, ""};
}

Gate against(const Resources& before, const Resources& after) {
  GateState old_state = gate_state("ci", run()), new_state = old_state;
  old_state.resources = before;
  new_state.resources = after;
  return compare(old_state, new_state);
}

TEST(GateResources, MoreRegistersSharedMemoryOrSpillsFail) {
  for (auto value : {&CompiledKernel::registers, &CompiledKernel::static_shared_bytes,
                     &CompiledKernel::spill_bytes}) {
    Resources now = table();
    now.kernels[1].*value += 8;
    expect_one(against(table(), now), Aspect::resources, {"topk_row for sm_80", "now"});
    EXPECT_TRUE(passed(against(now, table())));
  }
}

TEST(GateResources, AKernelThatIsNoLongerCompiledFails) {
  Resources now = table();
  now.kernels.pop_back();
  expect_one(against(table(), now), Aspect::resources, {"topk_row", "no longer compiled"});
  EXPECT_TRUE(passed(against(now, table())));
}

TEST(GateResources, AnotherToolkitComparesSpillsOnly) {
  Resources now = table();
  now.toolkit = "14.1";
  now.kernels[0].registers = 255;
  EXPECT_TRUE(passed(against(table(), now)));
  now.kernels[0].spill_bytes = 4;
  expect_one(against(table(), now), Aspect::resources, {"pool_kernel", "spilled"});
}

TEST(GateKills, ALowerScoreFewerMutantsOrALostClassFail) {
  GateState before = gate_state("ci", run()), now = before;
  before.kills = {{"sync", 84, 83}};
  for (const KillScore& worse : {KillScore{"sync", 84, 82}, KillScore{"sync", 83, 83},
                                 KillScore{"sync", 100, 98}, KillScore{"tail", 84, 84}}) {
    now.kills = {worse};
    expect_one(compare(before, now), Aspect::kill_score, {"mutants: sync", "83 of 84", "now"});
  }
  for (const KillScore& better :
       {KillScore{"sync", 84, 84}, KillScore{"sync", 90, 89}, KillScore{"sync", 84, 83}}) {
    now.kills = {better, {"tail", 3, 3}};
    EXPECT_TRUE(passed(compare(before, now)));
  }
}

TEST(GateKills, AScoreThatWasNotGivenIsSaid) {
  GateState before = gate_state("ci", run());
  before.kills = {{"all", 84, 84}};
  const Gate gate = compare(before, gate_state("ci", run()));
  EXPECT_TRUE(passed(gate));
  ASSERT_EQ(gate.notes.size(), 1u);
  EXPECT_NE(gate.notes[0].find("--mutants"), std::string::npos);
}

GateState full_state() {
  GateState state = gate_state("ci", run());
  state.resources = table();
  state.kills = {{"all", 84, 84}};
  return state;
}

TEST(GateKills, TheTableOfMutantsIsRead) {
  const auto scores = parse_kill_scores(
      R"([{"class":"sync","mutants":12,"equivalent":2,"killed_by_its_check":9,"killed":10,)"
      R"("percent":90.0}])",
      "scores.json");
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].name, "sync");
  EXPECT_EQ(scores[0].mutants, 10);
  EXPECT_EQ(scores[0].killed, 9);
  EXPECT_THROW(parse_kill_scores("[]", "scores.json"), ConfigError);
}

TEST(Baseline, ReadsBackAsItWasWritten) {
  const std::string text = baseline_text(full_state());
  const GateState back = parse_baseline(text, "ci.json");
  EXPECT_EQ(baseline_text(back), text);
  EXPECT_TRUE(compare(back, full_state()).findings.empty());
}

TEST(Baseline, DoesNotDependOnTheOrderOfRecords) {
  EXPECT_TRUE(rc::check("any order gives the same bytes", [] {
    std::vector<Record> records = run();
    const auto swaps = *rc::gen::container<std::vector<int>>(8, rc::gen::inRange(0, 8));
    for (std::size_t i = 0; i < 8; ++i) {
      std::swap(records[i], records[static_cast<std::size_t>(swaps[i])]);
    }
    RC_ASSERT(baseline_text(gate_state("ci", records)) == baseline_text(gate_state("ci", run())));
  }));
}

TEST(Baseline, ErrorsNameFileAndPlace) {
  const std::string good = baseline_text(full_state());
  struct Row {
    std::string from, to, said;
  };
  for (const Row& row :
       {Row{"\"format\": 1", "\"format\": 2", "/format"},
        Row{"load_sectors", "store_pages", "/counters"},
        Row{"\"traffic\"", "\"status\": \"fine\", \"traffic\"", "/entries/0/status"},
        Row{"\"worst\": 0.08", "\"worst\": -1", "/checks/0/worst"},
        Row{"\"killed\": 84", "\"killed\": 85", "/kill_scores/0/killed"},
        Row{"\"suite\"", "\"suit\"", "suit"}}) {
    std::string bad = good;
    ASSERT_NE(bad.find(row.from), std::string::npos) << row.from;
    bad.replace(bad.find(row.from), row.from.size(), row.to);
    try {
      parse_baseline(bad, "ci.json");
      FAIL() << row.to << " was taken";
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("ci.json"), std::string::npos) << said;
      EXPECT_NE(said.find(row.said), std::string::npos) << said;
    }
  }
}

TEST(BaselineDiff, ShowsTheLinesThatDiffer) {
  EXPECT_EQ(baseline_diff("a,\nb,\nc\n", "a,\nb,\nc\n"), "");
  EXPECT_EQ(baseline_diff("a,\nb\n", "a,\nb,\nc\n"), "+ c\n0 lines removed, 1 added\n");
  EXPECT_EQ(baseline_diff("a,\nb,\nc\n", "a,\nx,\nc\n"), "- b\n+ x\n1 lines removed, 1 added\n");
  EXPECT_EQ(baseline_diff("", "a\n"), "+ a\n0 lines removed, 1 added\n");
}

TEST(BaselineDiff, LinesThatAreOftenThereDoNotMisalignIt) {
  EXPECT_EQ(baseline_diff("[\na\n]\n[\nb\nc\n]\n", "[\nx\n]\n[\na\n]\n[\nb\nc\n]\n"),
            "+ x\n+ ]\n+ [\n0 lines removed, 3 added\n");
  GateState with = full_state();
  with.kills.clear();
  const std::string diff = baseline_diff(baseline_text(with), baseline_text(full_state()));
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '\n'), 4) << diff;
}

TEST(BaselineDiff, AppliedToTheOldLinesItGivesTheNewOnes) {
  EXPECT_TRUE(rc::check("as many lines as are added and removed", [] {
    const auto text = [] {
      std::string lines;
      for (const char c : *rc::gen::container<std::string>(rc::gen::inRange('a', 'f'))) {
        lines += c;
        lines += '\n';
      }
      return lines;
    };
    const std::string before = text(), after = text();
    const std::string diff = baseline_diff(before, after);
    RC_ASSERT(diff.empty() == (before == after));
    const auto lines = [](const std::string& all) {
      return std::count(all.begin(), all.end(), '\n');
    };
    std::int64_t removed = 0, added = 0;
    for (std::size_t at = 0; at < diff.size(); at = diff.find('\n', at) + 1) {
      removed += diff[at] == '-' ? 1 : 0;
      added += diff[at] == '+' ? 1 : 0;
    }
    RC_ASSERT(lines(before) - removed + added == lines(after));
  }));
}

TEST(BaselineDiff, AChangedCounterIsOneLineOut_OneLineIn) {
  std::vector<Record> now = run();
  now[3].counted->load_sectors *= 2;
  const std::string diff =
      baseline_diff(baseline_text(gate_state("ci", run())), baseline_text(gate_state("ci", now)));
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '\n'), 3) << diff;
}

TEST(GateDocuments, MarkdownStaysBelowAMebibyteWithAHundredThousandRecords) {
  std::vector<Record> before, now;
  for (int i = 0; i < 100'000; ++i) {
    before.push_back(record_of(std::to_string(i) + std::string(40, '<'), 0.01));
  }
  now = before;
  for (Record& record : now) {
    record.verdict.status = Status::failed;
    record.verdict.reason = std::string(300, '|');
  }
  const Gate gate = against(before, now);
  EXPECT_EQ(regressions(gate).size(), 100'000u);
  const std::string text = gate_markdown(gate, "ci.json", std::string(2 << 20, '`'));
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_GT(text.size(), std::size_t{1} << 19) << "it shows what fits";
  EXPECT_NE(text.find("more are not shown here"), std::string::npos);
  EXPECT_LT(gate_text(gate, "ci.json", 20).size(), 100'000u);
}

TEST(GateDocuments, FindingsReachJunitAndThePage) {
  std::vector<Record> now = run();
  now[3].counted->load_sectors *= 2;
  const Gate gate = against(run(), now);
  const ReportInput input{"gate", gate_records(gate, "ci.json", "indexpool gate"), {}, ""};
  EXPECT_EQ(overall_status(input.records), Status::failed);
  const std::string xml = junit(input);
  EXPECT_EQ(markup_problem(xml), "");
  EXPECT_NE(xml.find("gate.traffic.records"), std::string::npos) << xml;
  EXPECT_NE(xml.find("128, now 256"), std::string::npos) << xml;
  EXPECT_NE(html(input).find("128, now 256"), std::string::npos);
  EXPECT_EQ(overall_status(gate_records(against(run(), run()), "ci.json", "")), Status::passed);
}

}  // namespace
}  // namespace indexpool::reports
