// Records of points come back as points, and the work declared from them is the launch's.
#include "indexpool/verify/measure/predicted.hpp"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/measure.hpp"

namespace indexpool::verify::timing {
namespace {

RC_GTEST_PROP(StoredPoints, SurviveTheirJsonLine, ()) {
  Point point;
  point.op = *rc::gen::elementOf(operation_names());
  point.kernel = *rc::gen::elementOf(kernel_names(point.op));
  point.mode = *rc::gen::elementOf(std::vector<std::string>{"vllm_fp8", "bf16", "int8"});
  point.tokens = *rc::gen::inRange<std::int64_t>(4, 1 << 24);
  point.batch = *rc::gen::inRange<std::int64_t>(1, 40);
  point.rows = *rc::gen::inRange<std::int64_t>(1, 3000);
  const Geometry geometry{{32, 128, 1024, 8, true}, 16};
  Record record;
  store_point(point, geometry, record);
  const Record read = record_from_json(to_json_line(record), "test");
  RC_ASSERT(is_measured_point(read));
  const StoredPoint stored = stored_point(read);
  RC_ASSERT(stored.point == point);
  RC_ASSERT(stored.geometry == geometry);
}

TEST(StoredPoints, TheWorkOfARecordedPointIsWhatTheLaunchDeclared) {
  const Grid grid = load_grid("quick");
  const auto target = kernels::make_simt_target();
  MeasureOptions options;
  options.device = load_device("h200-sxm");
  for (const Record& record : measure_grid(*target, grid, options)) {
    const StoredPoint at = stored_point(record);
    const Work work = declared_work(at.point, at.geometry);
    EXPECT_EQ(work.traffic, *record.declared) << record.case_name;
    EXPECT_EQ(static_cast<double>(work.unique_read.value),
              record.values.at("work_unique_read_bytes"));
    EXPECT_EQ(static_cast<double>(work.blocks), record.values.at("work_blocks"));
  }
}

TEST(StoredPoints, OtherRecordsAreRefusedWithAReason) {
  Record record;
  record.case_name = "something else";
  EXPECT_FALSE(is_measured_point(record));
  EXPECT_THROW(stored_point(record), ConfigError);
  store_point({"topk", "topk", "vllm_fp8", 4096, 2, 1}, Geometry(), record);
  record.problem->lengths = {4096, 8192};
  EXPECT_THROW(stored_point(record), ConfigError);
  record.problem->lengths = {4096};
  record.values["rows_per_sequence"] = 1.5;
  EXPECT_THROW(stored_point(record), ConfigError);
  EXPECT_THROW(declared_work({"topk", "top", "vllm_fp8", 4096, 2, 1}, Geometry()), ConfigError);
}

TEST(StoredPoints, ATimeIsPredictedAsItWasTaken) {
  const auto how = [](const char* cache, const char* clock) {
    return timed_as({Seconds(1), Seconds(1), Seconds(1), 1, cache, clock});
  };
  EXPECT_FALSE(how("cold", "cuda_events").warm_l2);
  EXPECT_TRUE(how("warm", "cuda_events").warm_l2);
  EXPECT_FALSE(how("warm", "cuda_events").graph_launch);
  EXPECT_TRUE(how("warm", "graph_replay").graph_launch);
}

}  // namespace
}  // namespace indexpool::verify::timing
