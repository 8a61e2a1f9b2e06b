// Constants from samples: planted ones come back, and what cannot be told is refused.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/calibration/calibrate.hpp"
#include "indexpool/model/calibration/fits.hpp"
#include "indexpool/model/device_json.hpp"
#include "indexpool/model/error.hpp"

#include "expect_error.hpp"
#include "synthetic_samples.hpp"
#include "temporary_folder.hpp"

namespace indexpool::calibration {
namespace {

DeviceSpec h200() { return load_device("h200-sxm"); }

Samples clean() {
  DeviceSpec truth = h200();
  truth.l2_residency_bytes.value = 6e7;
  truth.l2_residency_exponent.value = 8;
  return SyntheticDevice(truth, 0, 1).samples();
}

void scale(Constant& constant, double factor) {
  constant.value *= factor;
  constant.low *= factor;
  constant.high *= factor;
}

// An H200 whose measurable constants are each off by a factor of their own.
DeviceSpec random_truth() {
  DeviceSpec device = h200();
  const auto factor = [] { return *rc::gen::inRange(700, 1300) / 1000.0; };
  for (Constant* constant :
       {&device.sm_clock_hz, &device.hbm_loaded_latency_s, &device.shared_bytes_per_clock_per_sm,
        &device.launch_s, &device.graph_launch_s, &device.f32_flop_per_s,
        &device.issue_per_clock_per_sm, &device.integer_per_clock_per_sm,
        &device.special_per_clock_per_sm, &device.l2_latency_s, &device.shared_latency_s,
        &device.atomic_latency_s, &device.shuffle_latency_s, &device.barrier_latency_s,
        &device.arithmetic_latency_s}) {
    scale(*constant, factor());
  }
  for (auto& [dtype, rate] : device.matrix_flop_per_s) scale(rate, factor());
  for (auto& [dtype, latency] : device.matrix_latency_s) scale(latency, factor());
  device.hbm_read_bytes_per_s.value = device.hbm_peak_bytes_per_s.value * factor() / 1.5;
  device.hbm_write_bytes_per_s.value = device.hbm_peak_bytes_per_s.value * factor() / 1.5;
  device.hbm_copy_bytes_per_s.value = device.hbm_peak_bytes_per_s.value * factor() / 1.5;
  device.l2_bytes_per_s.value = 2 * device.hbm_peak_bytes_per_s.value * factor();
  device.hbm_latency_s.value = 2 * device.l2_latency_s.value * factor();
  // At least as steep and as near the capacity as any that was measured.
  device.l2_residency_exponent.value = *rc::gen::inRange(50, 200) / 10.0;
  device.l2_residency_bytes.value =
      static_cast<double>(device.l2_capacity.value) * *rc::gen::inRange(85, 130) / 100.0;
  return device;
}

// How near a constant must come back when times are off by at most half a percent: as near, but
// where a fit divides by small differences or a stream is not quite ample.
double tolerance(const std::string& name) {
  if (name == "l2_residency_exponent") return 0.15;
  if (name == "hbm_loaded_latency_s") return 0.05;
  if (name == "hbm_read_bytes_per_s" || name == "l2_residency_bytes") return 0.03;
  if (name == "graph_launch_s" || name == "l2_bytes_per_s") return 0.01;
  return 0.0062;  // half a percent and rounding to four digits
}

RC_GTEST_PROP(Calibration, PlantedConstantsComeBackUnderNoise, (std::uint64_t seed)) {
  const DeviceSpec truth = random_truth();
  const DeviceSpec found =
      calibrate(SyntheticDevice(truth, 0.005, seed).samples(), "planted", h200());
  const auto expected = named_constants(truth);
  const auto constants = named_constants(found);
  RC_ASSERT(constants.size() == expected.size());
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const auto& [name, constant] = constants[i];
    RC_ASSERT(name == expected[i].name);
    const double error = std::abs(constant.value / expected[i].constant.value - 1);
    if (error > tolerance(name)) {
      RC_FAIL(name + " is " + std::to_string(constant.value) + ", planted " +
              std::to_string(expected[i].constant.value));
    }
    RC_ASSERT(constant.low <= constant.value && constant.value <= constant.high);
  }
}

RC_GTEST_PROP(Calibration, TheFileIsReadBackAsTheSameDevice, (std::uint64_t seed)) {
  const TemporaryFolder folder;
  const DeviceSpec made =
      calibrate(SyntheticDevice(random_truth(), 0.01, seed).samples(), "mine", h200());
  write_bytes(folder / "mine.json", to_json(made));
  RC_ASSERT(to_json(load_device(folder / "mine.json")) == to_json(made));
}

TEST(Calibration, SaysWhatWasMeasuredAndWhatWasNot) {
  const DeviceSpec device = calibrate(clean(), "mine", h200());
  for (const auto& [name, constant] : named_constants(device)) {
    const bool taken_over = name == "hbm_peak_bytes_per_s" || name.starts_with("link_");
    EXPECT_EQ(constant.kind == ConstantKind::measured, !taken_over) << name;
    if (taken_over) continue;
    expect_parts(constant.source, {"own measurement, 2026-01-02: "});
  }
  EXPECT_EQ(device.hbm_peak_bytes_per_s.kind, ConstantKind::published);
  expect_parts(device.source, {"one NVIDIA H200 (132 SMs, driver 580.0.0, CUDA 13.0, 2026-01-02",
                               "what is not measured as in h200-sxm"});
}

TEST(Calibration, WithoutABaseThePeakIsTheDriversAndNoLinksAreKnown) {
  Samples samples = clean();
  samples.facts.memory_peak_bytes_per_s = 4.917e12;
  const DeviceSpec device = calibrate(samples, "other", std::nullopt);
  EXPECT_EQ(device.hbm_peak_bytes_per_s.value, 4.917e12);
  expect_parts(device.hbm_peak_bytes_per_s.source, {"memory clock times bus width"});
  EXPECT_FALSE(device.link_bytes_per_s.has_value());
}

// --- each group of samples moves its own constants and no others ---

std::set<std::string> changed(const DeviceSpec& a, const DeviceSpec& b) {
  std::set<std::string> names;
  const auto before = named_constants(a), after = named_constants(b);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (std::abs(before[i].constant.value / after[i].constant.value - 1) > 1e-9) {
      names.insert(before[i].name);
    }
  }
  return names;
}

template <class Sample, class Chosen>
std::set<std::string> moved_by_slowing(std::vector<Sample> Samples::*list, Chosen chosen) {
  Samples samples = clean();
  for (Sample& sample : samples.*list) {
    if (!chosen(sample)) continue;
    if constexpr (std::is_same_v<Sample, ChainSample>) {
      sample.seconds *= 1.25;
    } else {
      for (double* time : {&sample.seconds.low, &sample.seconds.median, &sample.seconds.high}) {
        *time *= 1.25;
      }
    }
  }
  return changed(calibrate(clean(), "a", h200()), calibrate(samples, "a", h200()));
}

using Names = std::set<std::string>;

TEST(Calibration, ChainsMoveTheirOwnLatency) {
  const std::pair<Chain, const char*> rows[] = {{Chain::hbm, "hbm_latency_s"},
                                                {Chain::l2, "l2_latency_s"},
                                                {Chain::shared, "shared_latency_s"},
                                                {Chain::atomic, "atomic_latency_s"},
                                                {Chain::shuffle, "shuffle_latency_s"},
                                                {Chain::barrier, "barrier_latency_s"},
                                                {Chain::arithmetic, "arithmetic_latency_s"}};
  for (const auto& [chain, name] : rows) {
    const auto chosen = [chain = chain](const ChainSample& each) { return each.chain == chain; };
    EXPECT_EQ(moved_by_slowing(&Samples::chains, chosen), Names{name}) << to_string(chain);
  }
  const auto e4m3 = [](const ChainSample& each) { return each.dtype == "e4m3"; };
  EXPECT_EQ(moved_by_slowing(&Samples::chains, e4m3), Names{"matrix_latency_s/e4m3"});
}

TEST(Calibration, RatesMoveTheirOwnConstant) {
  const std::pair<Rate, const char*> rows[] = {{Rate::issue, "issue_per_clock_per_sm"},
                                               {Rate::integer, "integer_per_clock_per_sm"},
                                               {Rate::special, "special_per_clock_per_sm"},
                                               {Rate::shared, "shared_bytes_per_clock_per_sm"},
                                               {Rate::f32_fused, "f32_flop_per_s"}};
  for (const auto& [rate, name] : rows) {
    const auto chosen = [rate = rate](const RateSample& each) { return each.rate == rate; };
    EXPECT_EQ(moved_by_slowing(&Samples::rates, chosen), Names{name}) << to_string(rate);
  }
  const auto bf16 = [](const RateSample& each) { return each.dtype == "bf16"; };
  EXPECT_EQ(moved_by_slowing(&Samples::rates, bf16), Names{"matrix_flop_per_s/bf16"});
}

TEST(Calibration, StreamsAndLaunchesMoveTheirOwnConstants) {
  const auto streams = [](Access access) {
    return moved_by_slowing(&Samples::streams,
                            [access](const StreamSample& each) { return each.access == access; });
  };
  EXPECT_EQ(streams(Access::write), Names{"hbm_write_bytes_per_s"});
  EXPECT_EQ(streams(Access::copy), Names{"hbm_copy_bytes_per_s"});
  EXPECT_EQ(streams(Access::read), (Names{"hbm_read_bytes_per_s", "hbm_loaded_latency_s"}));
  const auto launches = [](bool graph) {
    return moved_by_slowing(&Samples::launches, [graph](const LaunchSample& each) {
      return (each.launch == Launch::graph) == graph;
    });
  };
  EXPECT_EQ(launches(false), Names{"launch_s"});
  EXPECT_EQ(launches(true), Names{"graph_launch_s"});
}

TEST(Calibration, TheRollOffDependsOnTheShapeOfWaitingRoundsOnly) {
  const auto slowed = [](auto chosen) { return moved_by_slowing(&Samples::cached_reads, chosen); };
  EXPECT_EQ(slowed([](const CachedReadSample& each) { return each.accesses_in_flight == 8; }),
            Names{"l2_bytes_per_s"});
  EXPECT_EQ(slowed([](const CachedReadSample& each) { return each.accesses_in_flight == 1; }),
            Names{});
  const std::int64_t capacity = h200().l2_capacity.value;
  EXPECT_EQ(slowed([&](const CachedReadSample& each) {
              return each.accesses_in_flight == 1 && each.footprint_bytes > capacity / 2 &&
                     each.footprint_bytes < capacity;
            }),
            (Names{"l2_residency_bytes", "l2_residency_exponent"}));
}

// --- what is missing or cannot be ---
std::string error_without(const std::function<void(Samples&)>& spoil) {
  Samples samples = clean();
  spoil(samples);
  return config_error_of([&] { calibrate(samples, "mine", h200()); });
}

template <class Sample, class Chosen>
std::string error_without(std::vector<Sample> Samples::*list, Chosen chosen) {
  return error_without([&](Samples& samples) { std::erase_if(samples.*list, chosen); });
}

TEST(Calibration, MissingSamplesAreNamed) {
  for (const Access access : {Access::read, Access::write, Access::copy}) {
    expect_parts(error_without(&Samples::streams,
                               [&](const StreamSample& each) { return each.access == access; }),
                 {std::string(to_string(access)), "1.5 GiB"});
  }
  for (const Chain chain : {Chain::hbm, Chain::l2, Chain::shared, Chain::atomic, Chain::shuffle,
                            Chain::barrier, Chain::arithmetic, Chain::matrix}) {
    expect_parts(error_without(&Samples::chains,
                               [&](const ChainSample& each) { return each.chain == chain; }),
                 {"no samples of the chain " + std::string(to_string(chain))});
  }
  for (const Rate rate : {Rate::issue, Rate::integer, Rate::special, Rate::shared, Rate::f32_fused,
                          Rate::f32_unfused}) {
    expect_parts(
        error_without(&Samples::rates, [&](const RateSample& each) { return each.rate == rate; }),
        {"no samples of the rate " + std::string(to_string(rate))});
  }
  expect_parts(error_without(&Samples::launches,
                             [](const LaunchSample& each) { return each.launch != Launch::graph; }),
               {"no samples of launches in a stream"});
  expect_parts(
      error_without(&Samples::launches, [](const LaunchSample& each) { return each.launches > 8; }),
      {"empty kernels in a graph", "two sizes"});
}

TEST(Calibration, FootprintsOnOneSideOfTheL2TellNoRollOff) {
  const std::int64_t capacity = h200().l2_capacity.value;
  const auto above = [&](const CachedReadSample& each) { return each.footprint_bytes > capacity; };
  const auto below = [&](const CachedReadSample& each) {
    return each.accesses_in_flight == 1 && each.footprint_bytes < capacity;
  };
  expect_parts(error_without(&Samples::cached_reads, above), {"both sides", "62.91 MB"});
  expect_parts(error_without(&Samples::cached_reads, below), {"both sides"});
  expect_parts(error_without([](Samples& samples) {
                 for (CachedReadSample& each : samples.cached_reads) {
                   const double seconds = static_cast<double>(each.bytes) * 1e-12;
                   each.seconds = {seconds, seconds, seconds};
                 }
               }),
               {"no longer a byte"});
}

TEST(Calibration, StreamsThatAreNeverShortTellNoLatency) {
  const auto short_of_bytes = [](const StreamSample& each) {
    return each.in_flight_bytes_per_sm() < (32 << 10);
  };
  expect_parts(error_without(&Samples::streams, short_of_bytes), {"short of bytes in flight"});
}

TEST(Calibration, AStreamAboveThePeakIsAnotherDevice) {
  expect_parts(
      error_without([](Samples& samples) {
        for (StreamSample& each : samples.streams) {
          if (each.access != Access::copy) continue;
          for (double* time : {&each.seconds.low, &each.seconds.median, &each.seconds.high}) {
            *time /= 2;
          }
        }
      }),
      {"above the peak", "4.8e+12", "--base"});
  expect_parts(error_without([](Samples& samples) { samples.facts.compute_capability = "8.0"; }),
               {"h200-sxm has compute capability 9.0", "has 8.0"});
}

TEST(Calibration, GraphsThatTakeNoTimeAreRefused) {
  expect_parts(error_without([](Samples& samples) {
                 for (LaunchSample& each : samples.launches) {
                   const double seconds = 1e-5 / static_cast<double>(each.launches);
                   each.seconds = {seconds, seconds, seconds};
                 }
               }),
               {"empty kernels in a graph", "idle device"});
}

// --- which base ---
TEST(BaseOf, IsTheDeviceOfThatNameCapabilityAndMemory) {
  DeviceFacts facts = clean().facts;
  const auto base = [&](const char* name, const char* capability, double peak) {
    facts.name = name;
    facts.compute_capability = capability;
    facts.memory_peak_bytes_per_s = peak;
    const auto found = base_of(facts);
    return found ? found->name : "";
  };
  EXPECT_EQ(base("NVIDIA H200", "9.0", 4.8143e12), "h200-sxm");
  EXPECT_EQ(base("NVIDIA A100-SXM4-80GB", "8.0", 2.039e12), "a100-sxm4-80gb");
  EXPECT_EQ(base("NVIDIA A100-SXM4-40GB", "8.0", 1.555e12), "a100-sxm4-40gb");
  EXPECT_EQ(base("NVIDIA A100-PCIE-40GB", "8.0", 1.555e12), "a100-pcie-40gb");
  EXPECT_EQ(base("NVIDIA H100 80GB HBM3", "9.0", 3.352e12), "h100-sxm");
  EXPECT_EQ(base("NVIDIA H100 PCIe", "9.0", 2.039e12), "");  // another memory
  EXPECT_EQ(base("NVIDIA H200", "10.0", 4.8e12), "");
  EXPECT_EQ(base("NVIDIA GeForce RTX 4090", "8.9", 1.008e12), "");
}

// --- fits by hand ---
TEST(Fits, SpreadIsMedianAndPercentilesWhateverTheOrder) {
  const Estimate spread = spread_of({5, 1, 4, 2, 3, 6, 7, 8, 9, 10, 11}, "numbers");
  EXPECT_EQ(spread.value, 6);
  EXPECT_EQ(spread.low, 2);
  EXPECT_EQ(spread.high, 10);
  EXPECT_EQ(spread_of({3}, "one").low, 3);
  expect_parts(config_error_of([] { spread_of({}, "nothing"); }), {"no samples of nothing"});
}

RC_GTEST_PROP(Fits, SlopeOfALineIsItsSlope, ()) {
  const double slope = *rc::gen::inRange(1, 1000) * 1e-8;
  const double start = *rc::gen::inRange(0, 1000) * 1e-7;
  std::vector<std::pair<double, double>> points;
  for (const double x : {1.0, 7.0, 32.0, 200.0}) points.emplace_back(x, start + slope * x);
  const Estimate found = slope_of(points, "a line");
  RC_ASSERT(std::abs(found.value / slope - 1) < 1e-6);
  RC_ASSERT(std::abs(found.low / slope - 1) < 1e-6);
  RC_ASSERT(std::abs(found.high / slope - 1) < 1e-6);
}

TEST(Fits, SlopeLiesBetweenThoseOfNeighbours) {
  const Estimate slope = slope_of({{0, 0}, {1, 1}, {2, 3}}, "a bend");
  EXPECT_DOUBLE_EQ(slope.value, 1.5);
  EXPECT_DOUBLE_EQ(slope.low, 1);
  EXPECT_DOUBLE_EQ(slope.high, 2);
  expect_parts(config_error_of([] { slope_of({{1, 1}, {1, 2}}, "a point"); }), {"two sizes"});
}

// Half of the peak in flight for one latency: 2^(-1/3) of the peak in a soft minimum of order 3.
TEST(Fits, LoadedLatencyIsLittlesLaw) {
  DeviceSpec device = h200();
  device.hbm_read_bytes_per_s.value = 4e12;
  device.hbm_loaded_latency_s.value = 5e-7;
  StreamSample stream{Access::read, 1 << 30, 0, 1, {}};
  stream.threads_per_sm = std::llround(4e12 * 5e-7 / 16 / static_cast<double>(device.sm_count));
  const double in_flight = static_cast<double>(stream.in_flight_bytes_per_sm() * device.sm_count);
  const double rate =
      rate_in_flight(BytesPerSecond(4e12), Bytes(std::llround(in_flight)), device).value;
  EXPECT_NEAR(rate, 4e12 * std::cbrt(0.5), 4e9);
  const double seconds = static_cast<double>(stream.bytes) / rate;
  stream.seconds = {seconds, seconds, seconds};
  const Estimate latency = loaded_latency(std::vector<StreamSample>{stream}, device);
  EXPECT_NEAR(latency.value, 5e-7, 1e-10);
  EXPECT_NEAR(latency.low, 5e-7, 1e-10);
}

TEST(Fits, RollOffWithoutNoiseIsExactAndItsIntervalHoldsIt) {
  DeviceSpec truth = h200();
  truth.l2_residency_bytes.value = 6.1e7;
  truth.l2_residency_exponent.value = 7;
  Samples samples = SyntheticDevice(truth, 0, 1).samples();
  std::erase_if(samples.cached_reads,
                [](const CachedReadSample& each) { return each.accesses_in_flight != 1; });
  const RollOff exact = l2_roll_off(samples.cached_reads, truth.l2_capacity);
  EXPECT_NEAR(exact.midpoint_bytes.value, 6.1e7, 6e4);
  EXPECT_NEAR(exact.exponent.value, 7, 0.02);
  int held = 0;
  constexpr int runs = 20;
  for (int seed = 0; seed < runs; ++seed) {
    Samples noisy = SyntheticDevice(truth, 0.03, static_cast<std::uint64_t>(seed)).samples();
    std::erase_if(noisy.cached_reads,
                  [](const CachedReadSample& each) { return each.accesses_in_flight != 1; });
    const RollOff fit = l2_roll_off(noisy.cached_reads, truth.l2_capacity);
    held += fit.midpoint_bytes.low <= 6.1e7 && 6.1e7 <= fit.midpoint_bytes.high ? 1 : 0;
  }
  EXPECT_GE(held, runs * 3 / 4);
}

}  // namespace
}  // namespace indexpool::calibration
