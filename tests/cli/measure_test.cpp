// indexpool measure as a user runs it, and records of it scored without a device.
#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

TEST(MeasureCommand, OnTheExecutorTheQuickGridPassesAndIsNotTimed) {
  const Folder folder;
  const Outcome outcome = indexpool(
      {"measure", "--grid", "quick", "--target", "simt", "--out", folder.file("measured")});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto records = read_records(folder.path() / "measured" / "records.jsonl");
  EXPECT_GE(records.size(), 15u);
  for (const Record& record : records) {
    EXPECT_FALSE(record.measurement);
    EXPECT_EQ(record.declared, record.counted) << record.case_name;
    EXPECT_TRUE(contains(record.repeat, "indexpool measure --grid quick --target simt"));
  }
}

// Records of the quick grid as if a device had taken `factor` of the predicted times.
std::string timed_records(const Folder& folder, double factor) {
  indexpool({"measure", "--grid", "quick", "--target", "simt", "--out", folder.file("counted")});
  auto records = read_records(folder.path() / "counted" / "records.jsonl");
  for (Record& record : records) {
    const Seconds time(record.prediction->time.value * factor);
    record.measurement = Measurement{time, time, time, 20, "cold", "cuda_events"};
  }
  write_records(folder.path() / "timed.jsonl", records);
  return folder.file("timed.jsonl");
}

TEST(MeasureCommand, StoredRecordsAreScoredWithoutADevice) {
  const Folder folder;
  const std::string records = timed_records(folder, 1.25);
  const Outcome outcome =
      indexpool({"score", records, "--format", "json", "--rows", folder.file("rows.csv")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto all = nlohmann::json::parse(outcome.out).back();
  EXPECT_EQ(all.at("kernel"), "all");
  EXPECT_NEAR(all.at("mean_error").get<double>(), 0.2, 1e-9);
  EXPECT_NEAR(all.at("bias").get<double>(), -0.2, 1e-9);
  EXPECT_TRUE(contains(read_text(folder.path() / "rows.csv"), "launch_s"));
}

TEST(MeasureCommand, AnotherDeviceGivesOtherPredictionsOfTheSameRecords) {
  const Folder folder;
  const std::string records = timed_records(folder, 1);
  const auto error_on = [&](const char* device) {
    const Outcome outcome = indexpool({"score", records, "--device", device, "--format", "json"});
    return nlohmann::json::parse(outcome.out).back().at("mean_error").get<double>();
  };
  EXPECT_NEAR(error_on("h200-sxm"), 0, 1e-9);
  EXPECT_GT(error_on("a100-sxm4-80gb"), 0.01);
}

TEST(MeasureCommand, StoredRecordsKeepTheirTimesWhenPredictedAnew) {
  const Folder folder;
  const std::string records = timed_records(folder, 2);
  const Outcome outcome = indexpool({"measure", "--records", records, "--device", "a100-sxm4-80gb",
                                     "--out", folder.file("anew")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto before = read_records(records);
  const auto after = read_records(folder.path() / "anew" / "records.jsonl");
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].measurement, after[i].measurement);
    EXPECT_EQ(before[i].verdict, after[i].verdict);
    EXPECT_EQ(before[i].values, after[i].values) << "the kernels declare what they did";
    EXPECT_EQ(after[i].prediction->device, "a100-sxm4-80gb");
    EXPECT_NE(before[i].prediction->time, after[i].prediction->time);
  }
}

TEST(MeasureCommand, ScoreExplainsTheWorstRowOfEachKernelTermByTerm) {
  const Folder folder;
  const Outcome outcome = indexpool({"score", timed_records(folder, 1.1), "--explain"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"Nothing is fitted", "every row is held out", "logits_e4m3", "launch",
                           "missed by most", "hbm"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
}

TEST(MeasureCommand, RecordsWithoutATimeAreRefusedByScore) {
  const Folder folder;
  indexpool({"measure", "--grid", "quick", "--target", "simt", "--out", folder.file("counted")});
  const std::string records = (folder.path() / "counted" / "records.jsonl").string();
  const Outcome outcome = indexpool({"score", records, "--device", "h200-sxm"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "no measured point")) << outcome.err;
  EXPECT_EQ(indexpool({"score", records, "--fit"}).code, 2);
}

TEST(MeasureCommand, BadOptionsSayWhatWasExpected) {
  const Folder folder;
  const std::string csv = folder.file("ncu.csv");
  std::ofstream(csv) << "nothing\n";
  const struct {
    std::vector<std::string> words;
    const char* says;
  } rows[] = {{{"--grid", "latncy"}, "did you mean \"latency\""},
              {{"--ops", "logit"}, "did you mean logits"},
              {{"--target", "simd"}, "did you mean simt"},
              {{"--grid", "counters", "--ops", "append"}, "holds none of them"},
              {{"--device", "h200"}, "h200-sxm"},
              {{"--samples", "0"}, "--samples: found 0"},
              {{"--counters", csv, "--launch-once"}, "choose one"},
              {{"--counters", csv}, "expected the output of ncu"},
              {{"--counters", folder.file("none.csv")}, "cannot read"}};
  for (const auto& row : rows) {
    std::vector<std::string> words{"measure"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Outcome outcome = indexpool(words);
    EXPECT_EQ(outcome.code, 2) << row.says;
    EXPECT_TRUE(contains(outcome.err, row.says)) << outcome.err;
  }
}

TEST(MeasureCommand, WithoutAGpuItSaysSoWithExitCodeThree) {
  const Outcome outcome = indexpool({"measure", "--grid", "quick", "--target", "cuda"});
  if (outcome.code == 0) GTEST_SKIP() << "there is a GPU, and the quick grid passed on it";
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "--target simt")) << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
