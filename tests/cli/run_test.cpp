#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

TEST(Run, ShowsTheGoldenCaseSideBySideWithItsForecast) {
  const Folder folder;
  const std::string out = folder.file("report");
  const Outcome outcome = indexpool({"run", "--out", out, "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  std::set<std::string> verified, predicted;
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    EXPECT_TRUE(row["status"] == "passed" || row["status"] == "marginal") << row.dump(1);
    verified.insert(row["op"]);
    if (!row["predicted_time_s"].is_null()) {
      predicted.insert(row["op"]);
      EXPECT_EQ(row["predicted_device"], "a100-sxm4-80gb");
    }
  }
  const std::set<std::string> operations = {"pool", "append", "quantize_query", "logits", "topk"};
  EXPECT_EQ(predicted, operations);
  verified.erase("project");
  EXPECT_EQ(verified, operations);
  EXPECT_EQ(read_records(out + "/records.jsonl").size(), nlohmann::json::parse(outcome.out).size());
  const std::string page = read_text(out + "/report.html");
  EXPECT_TRUE(contains(page, "What it would take: 1M tokens"));
  EXPECT_TRUE(contains(page, "Kernels on the roofline of the"));
  EXPECT_TRUE(contains(page, "data-flop="));
  EXPECT_TRUE(contains(page, "Through the memory hierarchy"));
  EXPECT_TRUE(contains(read_text(out + "/hierarchy.dot"), "<b>logits</b>"));
}

TEST(Verify, AProblemFromItsOptionsPassesAndRepeatsItself) {
  const std::vector<std::string> line = {
      "verify",    "--heads", "2",         "--head-dim", "32",       "--topk", "8",
      "--lengths", "0,3,37",  "--prefill", "20",         "--drafts", "2"};
  const Outcome table = indexpool(line);
  EXPECT_EQ(table.code, 0) << table.out << table.err;
  EXPECT_TRUE(contains(table.out, "Passed")) << table.out;
  std::vector<std::string> as_json = line;
  as_json.insert(as_json.end(), {"--format", "json"});
  const auto rows = nlohmann::json::parse(indexpool(as_json).out);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0]["repeat"],
            "indexpool verify --mode vllm_fp8 --heads 2 --head-dim 32 --topk 8 --lengths 0,3,37 "
            "--prefill 20 --drafts 2");
}

TEST(Verify, ReferenceAloneAgreesWithAGoldenCase) {
  const Outcome outcome = indexpool(
      {"verify", "--case", golden("kpool1_f32"), "--target", "reference", "--format", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "reference"));
}

TEST(Run, APlaceThatCannotBeWrittenIsFoundBeforeTheWork) {
  const Folder folder;
  std::ofstream(folder.file("taken")) << "a file";
  for (const char* command : {"run", "verify"}) {
    const Outcome outcome = indexpool({command, "--out", folder.file("taken/report")});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, "is not a folder; choose another place with --out"))
        << outcome.err;
  }
}

TEST(Verify, AMissingDeviceIsTheEnvironmentsFault) {
  const Folder folder;
  const Outcome outcome =
      indexpool({"verify", "--lengths", "8", "--target", "cuda", "--out", folder.file("report")});
  if (outcome.code == 0) GTEST_SKIP() << "there is a device";
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Run, ALayerOfAttentionComesInEveryStorageWithWhatItsLaunchesTake) {
  const Folder folder;
  const std::string out = folder.file("report");
  const Outcome outcome =
      indexpool({"run", "--attention", "composite", "--out", out, "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  std::set<std::string> modes;
  for (const Record& record : read_records(out + "/records.jsonl")) {
    ASSERT_TRUE(record.problem);
    EXPECT_EQ(record.problem->attention, "composite");
    EXPECT_TRUE(record.prediction) << record.op;
    modes.insert(record.problem->mode);
  }
  EXPECT_EQ(modes, (std::set<std::string>{"f32", "f16", "bf16"}));
  const std::string page = read_text(out + "/report.html");
  EXPECT_TRUE(contains(page, "Launch by launch"));
  EXPECT_TRUE(contains(page, "instructions and chains of dependent ones are not declared"));
  EXPECT_TRUE(contains(page, "decompress"));
  EXPECT_TRUE(contains(read_text(out + "/pipeline.dot"), "composites, values"));
}

TEST(Verify, ALayerOfAttentionRepeatsItself) {
  const std::vector<std::string> line = {"verify",  "--attention", "hybrid",     "--mode", "bf16",
                                         "--heads", "2",           "--head-dim", "32",     "--topk",
                                         "8",       "--lengths",   "19,0,5"};
  std::vector<std::string> as_json = line;
  as_json.insert(as_json.end(), {"--format", "json"});
  const Outcome outcome = indexpool(as_json);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 5U);
  std::string words = "indexpool";
  for (const std::string& word : line) words += " " + word;
  for (const auto& row : rows) EXPECT_EQ(row["repeat"], words);
  EXPECT_EQ(indexpool(as_json).out, outcome.out);
}

TEST(Verify, AttentionThatSaysNothingIsUntrusted) {
  const Outcome outcome = indexpool(
      {"verify", "--attention", "composite", "--heads", "1", "--head-dim", "32", "--lengths", "1"});
  EXPECT_EQ(outcome.code, 4) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
