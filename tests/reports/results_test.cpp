// Recorded GPU runs (all but the campaign of errors over bounds): still readable, complete, and
// what the README claims of them.
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "indexpool/model/record.hpp"

namespace indexpool {
namespace {

std::vector<std::filesystem::path> recorded_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(INDEXPOOL_SOURCE_DIR "/reports/results"))
    if (entry.path().extension() == ".jsonl" && entry.path().stem() != "utilisation")
      files.push_back(entry.path());
  return files;
}

TEST(RecordedResults, ArePassedVerdictsWithTheDeviceTheyCameFrom) {
  ASSERT_FALSE(recorded_files().empty());
  std::set<std::string> timed;
  for (const auto& file : recorded_files()) {
    for (const Record& record : read_records(file)) {
      const std::string what =
          file.filename().string() + ": " + record.case_name + ", " + record.op;
      EXPECT_EQ(record.verdict.status, Status::passed) << what << ": " << record.verdict.reason;
      EXPECT_EQ(record.environment.target, "cuda") << what;
      EXPECT_FALSE(record.environment.device.empty()) << what;
      EXPECT_FALSE(record.environment.driver.empty()) << what;
      EXPECT_FALSE(record.repeat.empty()) << what;
      if (record.measurement) {
        EXPECT_GT(record.measurement->median.value, 0) << what;
        timed.insert(record.implementation);
      }
    }
  }
  for (const char* kernel :
       {"pool", "append", "quantize_query", "logits_mma", "logits_e4m3", "logits_fma", "topk"})
    EXPECT_TRUE(timed.contains(kernel)) << kernel << " was never timed";
}

TEST(RecordedResults, HoldTheExecutorsBytesForEveryLaunch) {
  for (const auto& file : recorded_files()) {
    for (const Record& record : read_records(file)) {
      bool compared = false;
      for (const Check& check : record.verdict.checks)
        compared |= check.name == "executor" && check.status == Status::passed;
      EXPECT_TRUE(compared) << record.case_name << ", " << record.op;
    }
  }
}

}  // namespace
}  // namespace indexpool
