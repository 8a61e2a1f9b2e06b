// The profiler's CSV, and hardware bytes beside the declared.
#include "indexpool/verify/measure/counters.hpp"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/predicted.hpp"

namespace indexpool::verify::timing {
namespace {

const std::string heading =
    "==PROF== Connected to process 123\n"
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"dram__bytes_read.sum\","
    "\"dram__bytes_write.sum\",\"smsp__inst_executed.sum\",\"gpu__time_duration.sum\","
    "\"device__attribute_kind\"\n";
const std::string units = "\"\",\"\",\"\",\"\",\"Mbyte\",\"byte\",\"inst\",\"ns\",\"kind\"\n";

std::string error_of(const std::string& text) {
  try {
    read_counters(text, "ncu.csv");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Counters, ReadsQuotedCellsThousandsAndUnits) {
  const auto launches = read_counters(
      heading + units +
          "\"0\",\"123\",\"void pool_kernel<Instance<128>>(PoolParams)\",\"(4096, 1, 1)\","
          "\"1,234.5\",\"2,000\",\"1,048,576\",\"2,500\",\"No-CC\"\r\n",
      "ncu.csv");
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].function, "void pool_kernel<Instance<128>>(PoolParams)");
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("dram__bytes_read.sum"), 1234.5e6);
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("dram__bytes_write.sum"), 2000);
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("smsp__inst_executed.sum"), 1048576);
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("gpu__time_duration.sum"), 2.5e-6);
  EXPECT_EQ(launches[0].metrics.size(), 4u) << "attributes of the device are no metrics";
}

TEST(Counters, ErrorsNameLineColumnAndWhatWasExpected) {
  const std::string row =
      "\"0\",\"1\",\"pool_kernel\",\"(1, 1, 1)\",\"1\",\"2\",\"3\",\"4\",\"x\"\n";
  const struct {
    std::string text, says;
  } rows[] = {{"", "expected the output of ncu --csv --page raw"},
              {"no profiler ran\n", "expected the output of ncu --csv --page raw"},
              {heading, "a line of units"},
              {heading + units, "found no profiled launch"},
              {"\"ID\",\"dram__bytes_read.sum\"\n\"\",\"byte\"\n", "Kernel Name"},
              {heading + units + "\"0\",\"1\"\n", "ncu.csv:4:1: found 2 cells, expected 9"},
              {heading + units + "\"0\",\"1\",\"k\",\"\",\"many\",\"2\",\"3\",\"4\",\"\"\n",
               "ncu.csv:4:5: dram__bytes_read.sum: found \"many\""},
              {heading + units + "\"0\",\"1\",\"k\",\"\",\"-1\",\"2\",\"3\",\"4\",\"\"\n",
               "expected a count"},
              {heading + "\"\",\"\",\"\",\"\",\"furlong\",\"byte\",\"inst\",\"ns\",\"\"\n" + row,
               "found the unit \"furlong\""}};
  for (const auto& each : rows) {
    const std::string error = error_of(each.text);
    EXPECT_NE(error.find(each.says), std::string::npos) << each.says << "\n" << error;
  }
}

// A grid of one launch of 537 MB read and 34.6 MB written.
struct OneLaunch {
  Grid grid;
  Work work;
  DeviceSpec device = load_device("h200-sxm");

  OneLaunch() {
    grid.name = "one";
    grid.points = {{"pool", "pool", "vllm_fp8", 1 << 20, 1, 1}};
    work = declared_work(grid.points[0], grid.geometry);
  }
  double read() const { return static_cast<double>(work.unique_read.value); }
  double written() const { return static_cast<double>(work.unique_write.value); }
  Record record(double read_bytes, double written_bytes) const {
    const CountedLaunch launch{
        "void pool_kernel<I, 1>(PoolParams)",
        {{"dram__bytes_read.sum", read_bytes}, {"dram__bytes_write.sum", written_bytes}}};
    return counter_records(grid, {launch}, device, {}).at(0);
  }
};

TEST(Counters, DramBytesWithinThreePercentHold) {
  const OneLaunch one;
  EXPECT_EQ(one.record(one.read(), one.written()).verdict.status, Status::passed);
  EXPECT_EQ(one.record(one.read() * 1.028, one.written()).verdict.status, Status::passed);
  const Record over = one.record(one.read() * 1.04, one.written());
  EXPECT_EQ(over.verdict.status, Status::failed);
  EXPECT_NE(over.verdict.reason.find("are predicted: +3.7"), std::string::npos)
      << over.verdict.reason;
  EXPECT_EQ(one.record(one.read() * 0.96, one.written() * 0.0).verdict.status, Status::failed);
}

TEST(Counters, WhatTheL2MayStillHoldNeedNotHaveBeenWritten) {
  const OneLaunch one;
  EXPECT_EQ(one.record(one.read(), 0).verdict.status, Status::passed);
}

TEST(Counters, SmallLaunchesAreShownAndNotJudged) {
  OneLaunch small;
  small.grid.points[0].tokens = 4096;
  const Record record = small.record(1, 1);
  EXPECT_EQ(record.verdict.status, Status::skipped);
  EXPECT_GT(record.values.at("work_unique_read_bytes"), 0);
}

TEST(Counters, LaunchesMustBeTheGridsOwnInItsOrder) {
  const OneLaunch one;
  const CountedLaunch other{"topk_row(TopkParams)", {}};
  EXPECT_THROW(counter_records(one.grid, {}, one.device, {}), ConfigError);
  EXPECT_THROW(counter_records(one.grid, {other}, one.device, {}), ConfigError);
  const CountedLaunch without{"pool_kernel<I>(PoolParams)", {{"dram__bytes_read.sum", 1}}};
  EXPECT_THROW(counter_records(one.grid, {without}, one.device, {}), ConfigError);
}

TEST(Counters, EveryKernelOfTheGridsHasADeviceFunction) {
  for (const std::string& op : operation_names())
    for (const std::string& kernel : kernel_names(op)) EXPECT_NE(device_function(kernel), "");
  EXPECT_THROW(device_function("nothing"), ConfigError);
}

}  // namespace
}  // namespace indexpool::verify::timing
