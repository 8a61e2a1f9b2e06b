// A right plugin passes, on every mode and shape.
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

#include "plugins.hpp"

namespace indexpool::verify {
namespace {

void expect_good(const std::vector<Record>& records) {
  for (const Record& record : records) {
    const Status status = record.verdict.status;
    EXPECT_TRUE(status == Status::passed || status == Status::marginal)
        << record.case_name << ", " << record.op << ": " << to_string(status) << ": "
        << record.verdict.reason;
  }
}

TEST(Plugin, NaiveImplementationPassesTheSmokeSuite) {
  const Plugin plugin = open_plugin(plugin_path("good"));
  EXPECT_EQ(plugin.name, "naive");
  EXPECT_EQ(plugin.operations, plugin_operations());
  for (const Problem& problem : load_suite("smoke").problems) {
    const std::vector<Record> records = check_plugin_problem(plugin, problem, {});
    const bool quantised = numeric_mode(problem.mode).quantised();
    // Of each operation one from its own call and one from the pipeline's outputs.
    EXPECT_EQ(records.size(), quantised ? 9u : 7u);
    expect_good(records);
  }
}

TEST(Plugin, NaiveImplementationPassesInEveryNumericMode) {
  const Plugin plugin = open_plugin(plugin_path("good"));
  for (const NumericMode& mode : numeric_modes()) {
    Problem problem = small_problem();
    problem.mode = mode.name;
    problem.lengths = {21, 0, 3, 9};
    if (mode.name == "hf_f16") problem.fill = "small_integers";
    expect_good(check_plugin_problem(plugin, problem, {}));
  }
}

RC_GTEST_PROP(Plugin, NaiveImplementationRaisesNoAlarmOnRandomProblems, ()) {
  static const Plugin plugin = open_plugin(plugin_path("good"));
  Problem problem;
  const auto kpool = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  problem.indexer = {*rc::gen::inRange<std::int64_t>(1, 4), 32,
                     kpool * *rc::gen::inRange<std::int64_t>(1, 5), kpool,
                     *rc::gen::arbitrary<bool>()};
  problem.mode = *rc::gen::element<std::string>("vllm_fp8", "sglang_fp8", "int8", "bf16", "hf_f32");
  problem.lengths = *rc::gen::resize(
      3, rc::gen::nonEmpty(
             rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 40))));
  problem.fill = *rc::gen::element<std::string>("normal", "ties", "log_uniform", "relu_plateau",
                                                "extreme_gates", "shifted_gates");
  problem.seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
  for (const Record& record : check_plugin_problem(plugin, problem, {})) {
    if (record.verdict.status == Status::failed || record.verdict.status == Status::error) {
      RC_FAIL(describe(problem) + ": " + record.op + ": " + record.verdict.reason);
    }
  }
}

TEST(Plugin, APipelineMayGiveTheSelectionAlone) {
  const std::vector<Record> records = check_small("fused");
  EXPECT_EQ(record_of(records, "pipeline").verdict.status, Status::passed);
  const Record& topk = record_of(records, "topk");
  EXPECT_EQ(topk.verdict.status, Status::passed) << topk.verdict.reason;
  EXPECT_EQ(topk.implementation, "fused.so, pipeline");
  EXPECT_GT(topk.verdict.decidable_rows, 0);
  for (const char* op : {"pool", "quantize_query", "logits"}) {
    EXPECT_EQ(record_of(records, op).verdict.status, Status::skipped) << op;
  }
}

TEST(Plugin, AWrongSelectionOfAPipelineFails) {
  const std::vector<Record> records = check_small("fused_wrong");
  EXPECT_EQ(record_of(records, "pipeline").verdict.status, Status::passed);
  EXPECT_EQ(record_of(records, "topk").verdict.status, Status::failed);
}

TEST(Plugin, RecordsOfARightPluginSayThatTheCallWasLookedAt) {
  const std::vector<Record> records = check_small("good");
  for (const char* op : {"pool", "quantize_query", "logits", "topk"}) {
    const Record& record = record_of(records, op);
    EXPECT_EQ(record.implementation, "naive");
    EXPECT_EQ(record.environment.target, "plugin");
    EXPECT_EQ(record.repeat, "indexpool check --plugin good");
    for (const char* name : {"process", "sizes", "written", "guards", "rerun", "threads"}) {
      const Check* check = find_check(record.verdict, name);
      ASSERT_NE(check, nullptr) << op << ", " << name;
      EXPECT_EQ(check->status, Status::passed) << op << ", " << name << ": " << check->reason;
      EXPECT_GT(check->compared, 0) << op << ", " << name;
    }
  }
}

TEST(Plugin, TheSameCallsGiveTheSameRecords) {
  EXPECT_EQ(check_small("good"), check_small("good"));
  EXPECT_EQ(check_small("wrong_value"), check_small("wrong_value"));
}

TEST(Plugin, SeveralThreadsMayCheckAtOnce) {
  const std::vector<Record> alone = check_small("wrong_value");
  std::vector<std::vector<Record>> records(4);
  std::vector<std::thread> threads;
  for (std::vector<Record>& mine : records) {
    threads.emplace_back([&mine] { mine = check_small("wrong_value"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Record>& mine : records) EXPECT_EQ(mine, alone);
}

TEST(Plugin, WithoutItsWorkerTheMachineIsToBlame) {
  Plugin plugin = open_plugin(plugin_path("good"));
  plugin.worker = "/nowhere/indexpool-plugin-worker";
  EXPECT_THROW(check_plugin_problem(plugin, small_problem(), {}), EnvironmentError);
}

TEST(Plugin, AFileThatCannotBeAPluginIsTheUsersMistake) {
  const auto refused = [](const std::string& path) -> std::string {
    try {
      open_plugin(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_TRUE(contains(refused("/nowhere/libmine.so"), "/nowhere/libmine.so: no such file"));
  EXPECT_TRUE(contains(refused("/tmp"), "not a regular file"));
  EXPECT_TRUE(contains(refused(PLUGIN_HEADER), "not an ELF file"));
  EXPECT_TRUE(contains(refused("/dev/null"), "not a regular file"));
}

}  // namespace
}  // namespace indexpool::verify
