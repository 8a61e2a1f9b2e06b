// Forms of kernels: properties that hold for any constants, and values worked by hand.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/latency/kernel_form.hpp"

#include "expect_error.hpp"

namespace indexpool {
namespace {

const DeviceSpec& a100() {
  static const DeviceSpec device = load_device("a100-sxm4-80gb");
  return device;
}
const DeviceSpec& h200() {
  static const DeviceSpec device = load_device("h200-sxm");
  return device;
}
// One that every form runs on.
const DeviceSpec& device_for(const KernelForm& form) {
  return form.name == "paged_logits" || form.name == "row_topk" ? h200() : a100();
}

std::int64_t between(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}

// Near where fits start, up to a factor of e either way, inside the form's range.
std::vector<double> any_constants(const KernelForm& form) {
  std::vector<double> values;
  for (const FormConstant& constant : form.constants) {
    const double factor = std::exp(static_cast<double>(between(-100, 100)) / 100);
    const double value = constant.continuous ? constant.start * factor : constant.start;
    values.push_back(std::clamp(value, constant.least, constant.most));
  }
  return values;
}

StreamShape any_stream() {
  StreamShape shape;
  shape.read = Bytes(between(1, 1LL << 34));
  shape.written = Bytes(between(0, 1LL << 34));
  shape.repeated = *rc::gen::arbitrary<bool>();
  shape.timed_from = static_cast<TimedFrom>(between(0, 3));
  if (*rc::gen::arbitrary<bool>()) {
    shape.blocks = between(1, 10000);
    shape.threads_per_block = 32 * between(1, 32);
    shape.blocks_per_sm = between(1, 8);
  }
  return shape;
}
GemmShape any_gemm() { return {between(1, 9000), between(1, 70000), between(1, 70000), 2}; }
CacheShape any_cache() {
  CacheShape shape;
  shape.sequences = between(1, 1024);
  shape.rows_per_sequence = between(1, 4096);
  shape.context = between(0, 1 << 20);
  shape.tokens_per_entry = between(1, 4);
  shape.heads = 64;
  shape.key_heads = *rc::gen::element<std::int64_t>(1, 8, 64);
  shape.head_dim = 128;
  shape.entry_bytes = 132;
  shape.topk = 512;
  return shape;
}
KernelShape any_shape(const KernelForm& form) {
  if (form.name == "tile_gemm") return any_gemm();
  if (form.name == "pointer_chase") return ChaseShape{Bytes(between(1, 1LL << 34))};
  if (form.name.ends_with("attention") || form.name == "paged_logits" || form.name == "row_topk") {
    return any_cache();
  }
  return any_stream();
}

RC_GTEST_PROP(KernelForms, TimesAreFiniteAndNoPartExceedsTheSum, ()) {
  const auto forms = kernel_forms();
  const KernelForm& form = forms[static_cast<std::size_t>(between(0, std::ssize(forms) - 1))];
  const KernelTime time = form.time(any_shape(form), device_for(form), any_constants(form));
  RC_ASSERT(std::isfinite(time.time));
  RC_ASSERT(time.time > 0);
  for (const double part : time.part) {
    RC_ASSERT(part >= 0);
    RC_ASSERT(part <= time.time * (1 + 1e-12));
  }
}

RC_GTEST_PROP(KernelForms, MoreBytesNeverTakeLess, ()) {
  const KernelForm& form = kernel_form(*rc::gen::arbitrary<bool>() ? "stream" : "host_timed");
  const std::vector<double> constants = any_constants(form);
  const StreamShape less = any_stream();
  StreamShape more = less;
  more.read += Bytes(between(0, 1 << 30));
  RC_ASSERT(form.time(less, a100(), constants).time <=
            form.time(more, a100(), constants).time * (1 + 1e-12));
}

RC_GTEST_PROP(KernelForms, AFewBytesMoreChangeLittleAcrossTheEdgeOfTheL2, ()) {
  const KernelForm& form = kernel_form("stream");
  const std::vector<double> constants = any_constants(form);
  StreamShape shape = any_stream();
  shape.repeated = true;
  shape.read = Bytes(between(1 << 20, 200 << 20));
  const double before = form.time(shape, h200(), constants).time;
  shape.read += Bytes(shape.read.value / 100'000);
  RC_ASSERT(form.time(shape, h200(), constants).time < before * 1.001);
}

RC_GTEST_PROP(KernelForms, LargerProductsNeverTakeLess, ()) {
  const KernelForm& form = kernel_form("tile_gemm");
  const std::vector<double> constants = any_constants(form);
  const GemmShape less = any_gemm();
  GemmShape more = less;
  more.m += between(0, 2000);
  more.n += between(0, 2000);
  RC_ASSERT(form.time(less, a100(), constants).time <=
            form.time(more, a100(), constants).time * (1 + 1e-12));
}

RC_GTEST_PROP(KernelForms, MoreSequencesNeverTakeLess, ()) {
  const KernelForm& form = kernel_form(*rc::gen::element<std::string>(
      "paged_logits", "row_topk", "decode_attention", "prefill_attention"));
  const std::vector<double> constants = any_constants(form);
  const CacheShape less = any_cache();
  CacheShape more = less;
  more.sequences += between(0, 1000);
  RC_ASSERT(form.time(less, h200(), constants).time <=
            form.time(more, h200(), constants).time * (1 + 1e-12));
}

RC_GTEST_PROP(KernelForms, LongerRowsNeverTakeLess, ()) {
  const KernelForm& form = kernel_form("row_topk");
  const std::vector<double> constants = any_constants(form);
  CacheShape less = any_cache();
  less.rows_per_sequence = 1;
  less.context += less.topk * less.tokens_per_entry;  // all of them select
  CacheShape more = less;
  more.context += between(0, 1 << 20);
  RC_ASSERT(form.time(less, h200(), constants).time <=
            form.time(more, h200(), constants).time * (1 + 1e-12));
}

TEST(KernelForms, AStreamIsItsBytesOverTheRateAndALittleForTheL2) {
  StreamShape shape;
  shape.read = Bytes(1'776'000'000);
  shape.timed_from = TimedFrom::steady;
  const std::vector<double> constants = {1e6, 1, 1, 1, 1e-4};  // anything in flight; fixed unused
  const KernelTime time = kernel_form("stream").time(shape, a100(), constants);
  const double hbm = 1e-3, l2 = 1.776e9 / 5.42e12;  // 1776 GB/s and 5.42 TB/s: the device's file
  EXPECT_NEAR(time[Resource::hbm], hbm, 1e-9);
  EXPECT_NEAR(time.time, std::pow(std::pow(hbm, 4) + std::pow(l2, 4), 0.25), 1e-9);
  EXPECT_EQ(time.bound_by(), Resource::hbm);
}

TEST(KernelForms, LittlesLawLimitsAStreamOfFewThreads) {
  StreamShape shape;
  shape.read = Bytes(1 << 30);
  shape.timed_from = TimedFrom::steady;
  shape.blocks = 108;
  shape.blocks_per_sm = 1;
  shape.threads_per_block = 32;
  const std::vector<double> constants = {8, 1, 1, 1, 1e-7};
  // 108 x 32 threads x 8 B in flight over 700 ns: 39.5 GB/s, far below the peak.
  const double rate = 108 * 32 * 8 / 700e-9;
  EXPECT_NEAR(kernel_form("stream").time(shape, a100(), constants).time / ((1 << 30) / rate), 1,
              1e-4);
}

TEST(KernelForms, ATopkOfOneRowAddsItsStepsAndOneOfManySharesTheSMs) {
  //                       fixed row   entry near far   short per_sm long, entry, from
  const std::vector<double> constants = {1e-6, 2e-6, 1e-9, 1000, 2e-9, 1e-7, 2, 1e-5, 1e-9, 1e15};
  CacheShape shape;
  shape.sequences = shape.rows_per_sequence = 1;
  shape.tokens_per_entry = 4;
  shape.context = 4 * 3000 - 1;
  shape.topk = 512;
  // 2 us + 1000 x 1 ns + 2000 x 2 ns = 7 us, beside graph launch and fixed.
  const KernelForm& form = kernel_form("row_topk");
  const double launch = h200().graph_launch_s.value + 1e-6;
  EXPECT_NEAR(form.time(shape, h200(), constants).time, launch + 7e-6, 1e-9);
  shape.sequences = 132 * 2 * 100;  // a hundred rounds of all slots
  EXPECT_NEAR(form.time(shape, h200(), constants).time, launch + 700e-6, 1e-6);
  shape.context = 4 * 512 - 1;  // no more than k entries: copied
  shape.sequences = 1;
  EXPECT_NEAR(form.time(shape, h200(), constants).time, launch + 1e-7, 1e-9);
}

TEST(KernelForms, ALargeProductRunsAtItsBestTilesRate) {
  const ImplementationSet set = load_implementations("aiconfigurator-gemm.a100-sxm4-80gb");
  const GemmShape shape{8192, 65536, 4096, 2};  // published: 15.2875 ms
  const Prediction prediction = explain(set, set.implementations.front(), shape, a100());
  EXPECT_EQ(prediction.bound_by, "compute");
  EXPECT_LE(prediction.low.value, 15.2875e-3);
  EXPECT_GE(prediction.high.value, 15.2875e-3);
}

TEST(KernelForms, UnknownNameSaysWhichThereAre) {
  expect_parts(config_error_of([] { kernel_form("tile_gem"); }), {"tile_gem", "tile_gemm"});
}

TEST(Implementations, BuiltInSetsAreNamedAsTheirFilesAndFitTheirDevices) {
  ASSERT_FALSE(implementation_names().empty());
  for (const std::string& name : implementation_names()) {
    const ImplementationSet set = load_implementations(name);
    EXPECT_EQ(set.name, name);
    EXPECT_EQ(load_device(set.device).name, set.device);
    for (const Implementation& each : set.implementations) {
      EXPECT_TRUE(each.spread.contains("all")) << name << ": " << each.kernel;
    }
  }
}

RC_GTEST_PROP(Implementations, TheIntervalContainsThePrediction, ()) {
  static const ImplementationSet sets[] = {load_implementations("aiconfigurator-topk.h200-sxm"),
                                           load_implementations("aiconfigurator-logits.h200-sxm"),
                                           load_implementations("neusight.a100-pcie-40gb")};
  const ImplementationSet& set = sets[between(0, 2)];
  const auto& each = set.implementations[static_cast<std::size_t>(
      between(0, std::ssize(set.implementations) - 1))];
  const KernelForm& form = kernel_form(each.form);
  const DeviceSpec device = load_device(set.device);
  const KernelShape shape = any_shape(form);
  for (const KernelEstimate& out :
       {estimate(each, form, shape, device), estimate(each, form, shape, MovedDevice(device))}) {
    RC_ASSERT(out.low <= out.time);
    RC_ASSERT(out.time <= out.high);
  }
  const Prediction prediction = explain(set, each, shape, device);
  RC_ASSERT(prediction.terms.size() >= 2u);
  for (const CostTerm& term : prediction.terms) {
    RC_ASSERT(!term.formula.empty());
    RC_ASSERT(!term.source.empty());
  }
}

TEST(Implementations, SurviveBeingWrittenAndRead) {
  const ImplementationSet set = load_implementations("aiconfigurator-logits.h200-sxm");
  EXPECT_EQ(to_json(set), to_json(load_implementations("aiconfigurator-logits.h200-sxm")));
  const std::string error =
      config_error_of([] { load_implementations("aiconfigurator-logits.h20-sxm"); });
  expect_parts(error, {"aiconfigurator-logits.h200-sxm"});
}

RC_GTEST_PROP(PredictNumbers, EqualThePredictionInWords, ()) {
  Work work;
  work.unique_read = Bytes(between(0, 1LL << 32));
  work.unique_write = Bytes(between(0, 1LL << 32));
  work.traffic.shared_wavefronts = between(0, 1 << 24);
  work.blocks = between(0, 5000);
  work.blocks_per_sm = between(0, 8);
  work.in_flight_per_block = Bytes(between(0, 1 << 15));
  work.matrix_flop = Flop(static_cast<double>(between(0, 1LL << 40)));
  work.matrix_dtype = "e4m3";
  work.f32_flop = Flop(static_cast<double>(between(0, 1LL << 34)));
  work.reread = Bytes(between(0, 1 << 30));
  work.reuse_per_block = Bytes(between(0, 1 << 20));
  const CostOptions options{*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()};
  for (const DeviceSpec* device : {&a100(), &h200()}) {
    const Prediction words = predict(work, *device, options);
    const CostNumbers numbers = predict_numbers(work, *device, options);
    RC_ASSERT(std::abs(numbers.time / words.time - 1) < 1e-12);
    RC_ASSERT(std::abs(numbers.low / words.low - 1) < 1e-12);
    RC_ASSERT(std::abs(numbers.high / words.high - 1) < 1e-12);
  }
}

}  // namespace
}  // namespace indexpool
