// The quick grid on the executor, which counts; and on a target with a clock, where only launches
// that were right get a time.
#include "indexpool/verify/measure/measure.hpp"

#include <memory>
#include <set>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/predicted.hpp"

namespace indexpool::verify::timing {
namespace {

// The executor with a clock that always says the same.
class ClockedTarget final : public kernels::Target {
 public:
  int timings = 0;

  std::string_view name() const override { return "simt"; }
  Environment environment() const override { return executor_->environment(); }
  std::byte* allocate(std::string buffer, std::int64_t bytes, std::byte poison,
                      bool sparse) override {
    return executor_->allocate(std::move(buffer), bytes, poison, sparse);
  }
  void release(std::byte* buffer) override { executor_->release(buffer); }
  void upload(std::byte* to, const void* from, std::int64_t bytes) override {
    executor_->upload(to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::int64_t bytes) override {
    executor_->download(to, from, bytes);
  }
  std::string check_guards() override { return executor_->check_guards(); }
  kernels::LaunchContext& context() override { return executor_->context(); }
  void synchronize() override {}
  std::optional<Measurement> measure(const std::function<void()>& body, int samples,
                                     bool cold) override {
    body();
    return taken(samples, cold ? "cold" : "warm", "cuda_events");
  }
  std::optional<Measurement> replay(const std::function<void()>& body, int launches,
                                    int samples) override {
    for (int i = 0; i < launches; ++i) body();
    return taken(samples, "warm", "graph_replay");
  }

 private:
  Measurement taken(int samples, const char* cache, const char* clock) {
    ++timings;
    return {Seconds(1e-3), Seconds(0.9e-3), Seconds(1.1e-3), samples, cache, clock};
  }

  std::unique_ptr<kernels::Target> executor_ = kernels::make_simt_target();
};

MeasureOptions options_for(const char* device) {
  MeasureOptions options;
  options.device = load_device(device);
  return options;
}

TEST(MeasureGrid, TheQuickGridCountsOnTheExecutorWhatKernelsDeclare) {
  const Grid grid = load_grid("quick");
  const auto target = kernels::make_simt_target();
  const auto records = measure_grid(*target, grid, options_for("h200-sxm"));
  ASSERT_EQ(records.size(), grid.points.size());
  for (const Record& record : records) {
    EXPECT_EQ(record.verdict.status, Status::passed)
        << record.case_name << ": " << record.verdict.reason;
    EXPECT_FALSE(record.measurement) << "the executor has no clock";
    ASSERT_TRUE(record.declared && record.counted && record.prediction);
    EXPECT_EQ(*record.declared, *record.counted) << record.case_name;
    std::set<std::string> names;
    for (const Check& check : record.verdict.checks)
      if (check.compared > 0) names.insert(check.name);
    EXPECT_TRUE(names.contains("traffic") && names.contains("guards")) << record.case_name;
    EXPECT_GE(names.size(), 3u) << record.case_name << ": nothing judged what was written";
  }
}

// --- kernels with a fault: the ordinary launch, then one wrong element ---
void flip(void* at) { *static_cast<unsigned char*>(at) ^= 0x40; }
struct Corrupt {
  void operator()(const kernels::PoolArgs& args) const { flip(args.cache.pages); }
  void operator()(const kernels::SeedTailArgs& args) const { flip(args.tail.base); }
  void operator()(const kernels::AppendArgs& args) const { flip(args.cache.pages + page(args)); }
  void operator()(const kernels::QuantizeQueryArgs& args) const { flip(args.codes); }
  void operator()(const kernels::LogitsArgs& args) const {
    args.logits[(args.row_count - 1) * args.logits_stride] += 1;
  }
  void operator()(const kernels::TopkArgs& args) const { args.selection[1] += 4; }

  void operator()(const kernels::PolicyArgs&) const {}
  void operator()(const kernels::AttentionArgs&) const {}
  void operator()(const kernels::BackwardArgs&) const {}

  // Of the pool that the first request closes.
  static std::int64_t page(const kernels::AppendArgs& args) {
    const std::int64_t slot = args.host_slots[0], states = args.cache.states_per_page;
    return slot / states * args.cache.page_stride +
           slot % states * args.shape.config.index_head_dim;
  }
};
void launch_wrong(const kernels::OpArgs& args, kernels::LaunchContext& context) {
  kernels::find_kernel("simt", args).launch(args, context);
  std::visit(Corrupt{}, args);
}
const kernels::Kernel* find_wrong(std::string_view target, std::string_view name) {
  static kernels::Kernel wrong;
  wrong = *kernels::find_kernel(target, name);
  wrong.launch = launch_wrong;
  return &wrong;
}

TEST(MeasureGrid, OneWrongElementOfAnyOperationKeepsTheClockStopped) {
  const Grid grid = load_grid("quick");
  MeasureOptions options = options_for("h200-sxm");
  options.find = find_wrong;
  for (const Point& point : grid.points) {
    ClockedTarget target;
    const auto records = measure_point(target, point, grid.geometry, options);
    ASSERT_EQ(records.size(), 1u) << describe(point);
    EXPECT_EQ(records[0].verdict.status, Status::failed) << describe(point);
    EXPECT_FALSE(records[0].measurement) << describe(point);
    EXPECT_EQ(target.timings, 0) << describe(point);
  }
}

TEST(MeasureGrid, ARightLaunchIsTimedColdWarmAndInAGraph) {
  const Grid grid = load_grid("quick");
  ClockedTarget target;
  const auto records =
      measure_point(target, grid.points.front(), grid.geometry, options_for("h200-sxm"));
  ASSERT_EQ(records.size(), 3u);
  const std::pair<const char*, const char*> ways[] = {
      {"cold", "cuda_events"}, {"warm", "cuda_events"}, {"warm", "graph_replay"}};
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(records[i].measurement && records[i].prediction);
    EXPECT_EQ(records[i].measurement->cache, ways[i].first);
    EXPECT_EQ(records[i].measurement->clock, ways[i].second);
    const Work work = declared_work(grid.points.front(), grid.geometry);
    EXPECT_EQ(*records[i].prediction,
              predict(work, load_device("h200-sxm"), timed_as(*records[i].measurement)));
  }
}

TEST(MeasureGrid, LaunchOnceLaunchesOnceAndTimesNothing) {
  static int launches = 0;
  launches = 0;
  MeasureOptions options = options_for("h200-sxm");
  options.launch_once = true;
  options.find = [](std::string_view target, std::string_view name) -> const kernels::Kernel* {
    static kernels::Kernel counted;
    counted = *kernels::find_kernel(target, name);
    counted.launch = [](const kernels::OpArgs& args, kernels::LaunchContext& context) {
      ++launches;
      kernels::find_kernel("simt", args).launch(args, context);
    };
    return &counted;
  };
  const Grid grid = load_grid("quick");
  ClockedTarget target;
  measure_grid(target, grid, options);
  EXPECT_EQ(launches, std::ssize(grid.points));
  EXPECT_EQ(target.timings, 0);
}

TEST(MeasureGrid, AKernelThatRefusesAPointSaysWhy) {
  const auto target = kernels::make_simt_target();
  const auto records = measure_point(*target, {"logits", "logits_e4m3", "bf16", 512, 1, 1},
                                     Geometry(), options_for("h200-sxm"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].verdict.status, Status::unsupported);
  EXPECT_NE(records[0].verdict.reason.find("e4m3"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::verify::timing
