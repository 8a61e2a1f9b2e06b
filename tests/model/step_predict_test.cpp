// Times of whole steps: sums, intervals, streams, ranks, and the fast form's agreement.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/step/collective.hpp"
#include "indexpool/model/step/predict.hpp"
#include "indexpool/model/step/prepared.hpp"

#include "expect_error.hpp"

namespace indexpool::step {
namespace {

// Stands in for the indexer's kernels: a scan of the keys and one block that selects.
void stand_in(const Size& size, std::vector<Declared>& out) {
  out.resize(2);
  out[0].name = "logits";
  out[0].kernel = "stand-in";
  out[0].cache = out[0].work.unique_read = Bytes(size.sequences * (size.tokens / 4) * 132);
  out[0].work.unique_write = Bytes(size.rows() * (size.tokens / 4) * 4);
  out[1].name = "topk";
  out[1].kernel = "stand-in";
  out[1].work.unique_read = out[0].work.unique_write;
  out[1].work.blocks = size.rows();
}

Serving served(Phase phase = Phase::decode) {
  Serving serving;
  serving.phase = phase;
  return serving;
}

StepForecast forecast(const char* model, const char* device, const Serving& serving,
                      std::int64_t tokens, std::int64_t sequences,
                      const StepOptions& options = {}) {
  return predict_step(load_model(model), load_device(device), serving,
                      size_of(serving, tokens, sequences), stand_in, options);
}

TEST(StepForecast, OperationsLessWhatStreamsHideAreTheStep) {
  for (const std::string& model : architecture_names()) {
    for (const Phase phase : {Phase::decode, Phase::prefill}) {
      const StepForecast step = forecast(model.c_str(), "h200-sxm", served(phase), 1 << 20, 1, {});
      double sum = 0, low = 0, high = 0;
      for (const OperationForecast& each : step.operations) {
        sum += each.time.value;
        low += each.low.value;
        high += each.high.value;
        EXPECT_LE(each.low, each.time) << model << ": " << each.name;
        EXPECT_LE(each.time, each.high) << model << ": " << each.name;
      }
      EXPECT_NEAR(sum - step.hidden.value, step.time.value, 1e-9 * sum) << model;
      EXPECT_GE(step.hidden.value, 0) << model;
      EXPECT_LE(step.low.value, low * (1 + 1e-12)) << model;
      EXPECT_NEAR(step.high.value, high, 1e-9 * high) << model;
      EXPECT_TRUE(step.complete) << model;
    }
  }
}

TEST(StepForecast, OneStreamHidesNothing) {
  StepOptions options;
  options.two_streams = false;
  const StepForecast one = forecast("glm-5.3-flash", "h200-sxm", served(), 1 << 20, 1, options);
  const StepForecast two = forecast("glm-5.3-flash", "h200-sxm", served(), 1 << 20, 1);
  EXPECT_EQ(one.hidden.value, 0);
  EXPECT_GT(two.hidden.value, 0);
  EXPECT_NEAR(one.time.value, two.time.value + two.hidden.value, 1e-12);
}

TEST(StepForecast, ReadingTheActiveParametersAloneBoundsAStepFromBelow) {
  for (const char* device : {"a100-sxm4-80gb", "h100-sxm", "h200-sxm"}) {
    const StepForecast step = forecast("glm-5.3-flash", device, served(), 1 << 20, 1);
    const double least = static_cast<double>(step.reads.parameters.value) /
                         load_device(device).hbm_read_bytes_per_s.value;
    EXPECT_GT(step.time.value, least) << device;
    EXPECT_LT(step.time.value, 3 * least) << device;
    EXPECT_EQ(step.bound_by, "hbm") << device;
  }
}

TEST(StepForecast, EveryOperationLaunchesFasterInAGraph) {
  StepOptions stream;
  stream.graph_launch = false;
  for (const char* device : {"a100-sxm4-80gb", "h200-sxm"}) {
    const StepForecast slow = forecast("glm-5.3-flash", device, served(), 1 << 20, 1, stream);
    const StepForecast fast = forecast("glm-5.3-flash", device, served(), 1 << 20, 1);
    ASSERT_EQ(slow.operations.size(), fast.operations.size());
    for (std::size_t i = 0; i < slow.operations.size(); ++i) {
      EXPECT_GT(slow.operations[i].time, fast.operations[i].time) << fast.operations[i].name;
    }
    EXPECT_GT(slow.time, fast.time);
  }
}

TEST(StepForecast, RanksShortenAStepAndExchangeItsRows) {
  Serving eight = served();
  eight.request.tensor_parallel = 8;
  const StepForecast alone = forecast("glm-5.3-flash", "h200-sxm", served(), 1 << 20, 32);
  const StepForecast shared = forecast("glm-5.3-flash", "h200-sxm", eight, 1 << 20, 32);
  EXPECT_LT(shared.time, alone.time);
  double exchanged = 0;
  for (const OperationForecast& each : shared.operations) {
    if (each.group != "collectives") continue;
    exchanged += each.time.value;
    EXPECT_FALSE(each.prediction.terms.back().source.empty());
  }
  EXPECT_GT(exchanged, 0);
}

TEST(StepForecast, MeasuredImplementationsAreUsedWhereTheDeviceHasThemAndNamed) {
  const auto measured = [](const char* device, bool wanted) {
    StepOptions options;
    options.measured = wanted;
    std::int64_t count = 0;
    for (const OperationForecast& each :
         forecast("minimax-m3", device, served(), 1 << 16, 4, options).operations) {
      if (!each.source.starts_with("measured: aiconfigurator")) continue;
      ++count;
      EXPECT_FALSE(each.kernel.empty());
    }
    return count;
  };
  EXPECT_GT(measured("a100-sxm4-80gb", true), 5);  // products, and attention over all entries
  EXPECT_EQ(measured("a100-sxm4-80gb", false), 0);
  EXPECT_EQ(measured("h200-sxm", true), 0);
}

TEST(StepForecast, ARefusedKernelIsSaidAndTakesNoTime) {
  const Serving serving = served();
  const auto refusing = [](const Size&, std::vector<Declared>& out) {
    out.resize(1);
    out[0].name = "logits";
    out[0].refusal = "no kernel for that";
  };
  const StepForecast step = predict_step(load_model("glm-5.3-flash"), load_device("h200-sxm"),
                                         serving, size_of(serving, 1 << 20, 1), refusing);
  EXPECT_FALSE(step.complete);
  EXPECT_GT(step.time.value, 0);
}

TEST(StepForecast, ADeviceWithoutLinksHasNoRanks) {
  DeviceSpec device = load_device("h200-sxm");
  device.link_bytes_per_s.reset();
  Serving serving = served();
  serving.request.tensor_parallel = 2;
  expect_parts(config_error_of([&] {
                 predict_step(load_model("glm-5.3-flash"), device, serving,
                              size_of(serving, 4096, 1), stand_in);
               }),
               {"device h200-sxm: /link_bytes_per_s", "add the links"});
}

TEST(StepForecast, MoreTokensOrSequencesNeverTakeLess) {
  // But for blocks: a longer context is split over more of them, which fill a device a little
  // better.
  constexpr double of_blocks = 0.999;
  for (const char* model : {"glm-5.3-flash", "minimax-m3", "deepseek-v4-flash", "qwen4-exp"}) {
    double last = 0;
    for (const std::int64_t tokens : {1 << 12, 1 << 16, 1 << 20, 10 << 20}) {
      const double time = forecast(model, "h200-sxm", served(), tokens, 1).time.value;
      EXPECT_GE(time, last * of_blocks) << model << " at " << tokens;
      last = time;
    }
    last = 0;
    for (const std::int64_t sequences : {1, 4, 16, 64, 256}) {
      const double time = forecast(model, "h200-sxm", served(), 1 << 16, sequences).time.value;
      EXPECT_GE(time, last * of_blocks) << model << ", " << sequences << " sequences";
      last = time;
    }
  }
}

TEST(Collective, SmallAllReducesTakeWhatWasPublishedForH100s) {
  // sgl-project/sglang#2904, launches in a stream: 4 kB, 256 kB and 1 MB over 2, 4 and 8 GPUs.
  const struct {
    std::int64_t ranks, bytes;
    double seconds;
  } published[] = {{2, 4096, 3.9e-6},     {4, 4096, 3.7e-6},     {8, 4096, 5.7e-6},
                   {2, 262144, 7.9e-6},   {4, 262144, 13.9e-6},  {8, 262144, 16.7e-6},
                   {2, 1 << 20, 19.9e-6}, {4, 1 << 20, 31.1e-6}, {8, 1 << 20, 33.8e-6}};
  DeviceSpec device = load_device("h100-sxm");
  device.launch_s = {2.45e-6, 2.4e-6, 2.5e-6, "of their host, which launches back to back", {}};
  for (const auto& row : published) {
    const CostNumbers time = predict_numbers(
        Collective{CollectiveKind::all_reduce, row.ranks, row.bytes}, 1, device, {});
    const double ratio = time.time.value / row.seconds;
    EXPECT_LT(std::max(ratio, 1 / ratio), 1.5) << row.bytes << " B over " << row.ranks;
    EXPECT_LE(time.low.value, row.seconds) << row.bytes << " B over " << row.ranks;
    EXPECT_GE(time.high.value, row.seconds) << row.bytes << " B over " << row.ranks;
  }
}

TEST(Collective, LargeMessagesReachTheLinksRate) {
  const DeviceSpec device = load_device("h200-sxm");
  const Collective sum{CollectiveKind::all_reduce, 8, std::int64_t{1} << 30};
  const double bytes = 2.0 * 7 / 8 * (1 << 30);
  EXPECT_NEAR(predict_numbers(sum, 1, device, {}).time.value,
              bytes / device.link_bytes_per_s->value, 5e-5);
}

RC_GTEST_PROP(PreparedStep, SaysWhatTheForecastInWordsSays, ()) {
  const std::vector<std::string> models = architecture_names(), devices = device_names();
  const Architecture model = load_model(*rc::gen::elementOf(models));
  const DeviceSpec device = load_device(*rc::gen::elementOf(devices));
  Serving serving = served(*rc::gen::element(Phase::decode, Phase::prefill));
  serving.request.tensor_parallel = *rc::gen::element<std::int64_t>(1, 2, 4);
  serving.request.context_parallel = *rc::gen::element<std::int64_t>(1, 2);
  if (!model.draft_layers.empty()) {
    serving.request.drafts = *rc::gen::inRange<std::int64_t>(0, 4);
  }
  StepOptions options;
  options.two_streams = *rc::gen::arbitrary<bool>();
  options.graph_launch = *rc::gen::arbitrary<bool>();
  PreparedStep prepared(model, device, serving, stand_in, options);
  // The same object again and again, so that what it keeps must be right.
  for (int i = 0; i < 4; ++i) {
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
    const auto sequences = *rc::gen::element<std::int64_t>(1, 2, 7);
    const CostNumbers fast = prepared.predict(tokens, sequences);
    const StepForecast slow = predict_step(model, device, serving,
                                           size_of(serving, tokens, sequences), stand_in, options);
    RC_ASSERT(fast.time == slow.time);
    RC_ASSERT(fast.low == slow.low);
    RC_ASSERT(fast.high == slow.high);
  }
}

TEST(PreparedStep, ARefusedSizeLeavesNothingBehind) {
  const Architecture model = load_model("indexpool-a-composite");
  const Serving serving = served();
  PreparedStep step(model, load_device("h200-sxm"), serving, {});
  constexpr std::int64_t sequences = 1 << 24;
  const Seconds short_context = step.predict(1024, sequences).time;
  config_error_of([&] { step.predict(std::int64_t{1} << 40, sequences); });
  EXPECT_EQ(step.predict(1024, sequences).time, short_context);
}

TEST(PreparedStep, ACopyIsItsOwn) {
  const Serving serving = served();
  PreparedStep one(load_model("glm-5.3-flash"), load_device("h200-sxm"), serving, stand_in);
  const Seconds first = one.predict(1 << 20, 1).time;
  PreparedStep other = one;
  EXPECT_NE(other.predict(1 << 12, 8).time, first);
  EXPECT_EQ(one.predict(1 << 20, 1).time, first);
  EXPECT_EQ(other.predict(1 << 20, 1).time, first);
}

}  // namespace
}  // namespace indexpool::step
