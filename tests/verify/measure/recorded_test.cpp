// Times and counters recorded on an H200: complete, right when they were taken, and still what the
// kernels declare.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "indexpool/model/record.hpp"
#include "indexpool/verify/measure/grid.hpp"
#include "indexpool/verify/measure/predicted.hpp"

namespace indexpool::verify::timing {
namespace {

const std::filesystem::path folder = INDEXPOOL_SOURCE_DIR "/reports/results/measured";

const std::vector<Record>& latencies() {
  static const std::vector<Record> records = read_records(folder / "h200-latency.jsonl");
  return records;
}

TEST(RecordedTimes, HoldEveryPointOfTheGridColdWarmAndInAGraph) {
  const Grid grid = load_grid("latency");
  std::map<std::string, std::set<std::string>> ways;
  for (const Record& record : latencies()) {
    ASSERT_TRUE(record.measurement) << record.case_name;
    ways[record.case_name].insert(record.measurement->cache + " " + record.measurement->clock);
  }
  for (const Point& point : grid.points)
    EXPECT_EQ(ways[describe(point)],
              (std::set<std::string>{"cold cuda_events", "warm cuda_events", "warm graph_replay"}))
        << describe(point);
}

TEST(RecordedTimes, AreOfLaunchesThatWereRight) {
  for (const Record& record : latencies()) {
    EXPECT_EQ(record.verdict.status, Status::passed) << record.case_name;
    EXPECT_EQ(record.environment.device, "NVIDIA H200");
    EXPECT_FALSE(record.environment.driver.empty());
    EXPECT_LE(record.measurement->p10, record.measurement->median) << record.case_name;
    EXPECT_LE(record.measurement->median, record.measurement->p90) << record.case_name;
  }
}

TEST(RecordedTimes, AColdLaunchIsNoFasterThanAWarmOne) {
  std::map<std::string, double> cold;
  int faster = 0, points = 0;
  for (const Record& record : latencies()) {
    if (record.measurement->clock != "cuda_events") continue;
    if (record.measurement->cache == "cold") {
      cold[record.case_name] = record.measurement->median.value;
      continue;
    }
    ++points;
    // 5 %: what two medians of twenty may differ by.
    if (record.measurement->median.value > 1.05 * cold.at(record.case_name)) ++faster;
  }
  EXPECT_GE(points, 60);
  EXPECT_EQ(faster, 0);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// The same GPU elsewhere, with later kernels: what a host takes to launch is its own.
TEST(RecordedTimes, OnAnotherHostOnlyLaunchesTookLonger) {
  const auto others = read_records(folder / "h200-latency-other-host.jsonl");
  ASSERT_EQ(others.size(), latencies().size());
  const auto key = [](const Record& record) {
    return record.case_name + record.measurement->cache + record.measurement->clock;
  };
  std::map<std::string, double> here;
  for (const Record& record : latencies()) here[key(record)] = record.measurement->median.value;
  std::vector<double> in_graphs, longer;
  for (const Record& record : others) {
    EXPECT_EQ(record.verdict.status, Status::passed) << record.case_name;
    const double there = record.measurement->median.value, before = here.at(key(record));
    const bool graph = record.measurement->clock == "graph_replay";
    if (graph) in_graphs.push_back(there / before);
    if (!graph && before < 12e-6) longer.push_back(there - before);
  }
  EXPECT_NEAR(median(in_graphs), 1, 0.02);
  EXPECT_NEAR(median(longer), 1.5e-6, 0.1e-6);
}

TEST(RecordedTimes, TheKernelsStillDeclareWhatTheyDidThen) {
  std::set<std::string> seen;
  for (const Record& record : latencies()) {
    if (!seen.insert(record.case_name).second) continue;
    const StoredPoint at = stored_point(record);
    const Work work = declared_work(at.point, at.geometry);
    EXPECT_EQ(work.traffic, record.declared) << record.case_name;
  }
}

// What the cost model promises of our kernels: of the cold and warm times, which no constant was
// fitted to.
TEST(RecordedTimes, ArePredictedWithinEightPercentAndTheirIntervalsHold) {
  const DeviceSpec h200 = load_device("h200-sxm");
  for (const char* cache : {"cold", "warm"}) {
    std::vector<double> errors;
    double inside = 0;
    for (const Record& record : latencies()) {
      if (record.measurement->clock != "cuda_events" || record.measurement->cache != cache)
        continue;
      const StoredPoint at = stored_point(record);
      const Prediction prediction =
          predict(declared_work(at.point, at.geometry), h200, timed_as(*record.measurement));
      const Seconds median = record.measurement->median;
      errors.push_back(std::abs(prediction.time / median - 1));
      inside += prediction.low <= median && median <= prediction.high ? 1 : 0;
    }
    ASSERT_GE(errors.size(), 60U);
    std::sort(errors.begin(), errors.end());
    const double count = static_cast<double>(errors.size());
    EXPECT_LE(std::accumulate(errors.begin(), errors.end(), 0.0) / count, 0.08) << cache;
    EXPECT_LE(errors[static_cast<std::size_t>(0.95 * count)], 0.20) << cache;
    EXPECT_GE(inside / count, 0.85) << cache;
  }
}

TEST(RecordedCounters, DramPassedWhatIsPredictedWithinThreePercent) {
  const std::vector<Record> records = read_records(folder / "h200-counters.jsonl");
  const Grid grid = load_grid("counters");
  ASSERT_EQ(records.size(), grid.points.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].case_name, describe(grid.points[i]));
    EXPECT_EQ(records[i].verdict.status, Status::passed)
        << records[i].case_name << ": " << records[i].verdict.reason;
    const Work work = declared_work(grid.points[i], grid.geometry);
    EXPECT_GT((work.unique_read + work.unique_write).value, 200'000'000) << records[i].case_name;
    const double counted =
        records[i].values.at("dram_read_bytes") + records[i].values.at("dram_write_bytes");
    const double predicted =
        static_cast<double>(predict(work, load_device("h200-sxm")).hbm_bytes.value);
    EXPECT_NEAR(counted / predicted, 1, 0.03) << records[i].case_name;
  }
}

}  // namespace
}  // namespace indexpool::verify::timing
