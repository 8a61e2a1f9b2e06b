#include "indexpool/model/config.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

std::string built_in_text(std::span<const DataFile> files, std::string_view name) {
  for (const DataFile& file : files) {
    if (file.name == name) return std::string(file.text);
  }
  ADD_FAILURE() << name << " is not built in";
  return "";
}

// The built-in file with one text replaced, in a folder of the test's own.
std::filesystem::path write_edited(const TemporaryFolder& folder, std::string text,
                                   std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the file: " << from;
  text.replace(at, from.size(), to);
  write_bytes(folder / "edited.json", text);
  return folder / "edited.json";
}

std::string device_error(std::string_view from, std::string_view to) {
  const TemporaryFolder folder;
  const std::string path =
      write_edited(folder, built_in_text(embedded_devices(), "a100-sxm4-80gb"), from, to);
  const std::string error = config_error_of([&] { load_device(path); });
  expect_parts(error, {path});
  return error;
}

TEST(Device, EveryBuiltInFileIsNamedAsItsFileAndLoads) {
  for (const std::string& name : device_names()) EXPECT_EQ(load_device(name).name, name);
  EXPECT_EQ(device_names(), (std::vector<std::string>{"a100-pcie-40gb", "a100-sxm4-40gb",
                                                      "a100-sxm4-80gb", "h100-sxm", "h200-sxm"}));
}

TEST(Device, A100HasItsPublishedFacts) {
  const DeviceSpec a100 = load_device("a100-sxm4-80gb");
  EXPECT_EQ(a100.sm_count, 108);
  EXPECT_EQ(a100.memory, Bytes(80LL << 30));
  EXPECT_EQ(a100.l2_capacity, Bytes(40LL << 20));
  EXPECT_EQ(a100.shared_memory_per_sm, Bytes(164 << 10));
  EXPECT_EQ(a100.hbm_peak_bytes_per_s.value, 2.039e12);
  EXPECT_EQ(a100.hbm_read_bytes_per_s.value, 1.776e12);
  EXPECT_FALSE(a100.matrix_flop_per_s.contains("e4m3"));
  EXPECT_TRUE(load_device("h200-sxm").matrix_flop_per_s.contains("e4m3"));
}

TEST(Device, APathIsReadFromDisk) {
  const TemporaryFolder folder;
  const std::string path = write_edited(folder, built_in_text(embedded_devices(), "h200-sxm"),
                                        "\"name\": \"h200-sxm\"", "\"name\": \"mine\"");
  EXPECT_EQ(load_device(path).name, "mine");
}

TEST(Device, UnknownKeyIsNamedWithItsPlace) {
  const std::string error = device_error("\"sm_count\": 108", "\"sm_count\": 108, \"sm_cuont\": 1");
  expect_parts(error, {"sm_cuont"});
  expect_parts(error, {"sm_count"});  // did you mean
}

TEST(Device, MissingKeyIsNamed) {
  const std::string error = device_error("\"sm_count\": 108,", "");
  expect_parts(error, {"\"sm_count\" is missing"});
}

TEST(Device, ConstantOutsideItsIntervalIsRefusedWithItsPointer) {
  const std::string error = device_error("\"low\": 1.74e12", "\"low\": 1.8e12");
  expect_parts(error, {"/hbm_read_bytes_per_s"});
  expect_parts(error, {"low <= value <= high"});
}

TEST(Device, ConstantNeedsASource) {
  const std::string error =
      device_error("\"source\": \"NVIDIA A100 80GB SXM data sheet\"", "\"source\": \"\"");
  expect_parts(error, {"/hbm_peak_bytes_per_s/source"});
}

TEST(Device, KindOfAConstantIsNamedOrReadFromItsSource) {
  const DeviceSpec h200 = load_device("h200-sxm");
  EXPECT_EQ(h200.hbm_read_bytes_per_s.kind, ConstantKind::measured);
  EXPECT_EQ(h200.hbm_peak_bytes_per_s.kind, ConstantKind::published);
  EXPECT_EQ(load_device("a100-sxm4-80gb").issue_per_clock_per_sm.kind, ConstantKind::assumed);
  const TemporaryFolder folder;
  const std::string path =
      write_edited(folder, built_in_text(embedded_devices(), "a100-sxm4-80gb"),
                   "\"source\": \"NVIDIA A100 80GB SXM data sheet\"",
                   "\"source\": \"NVIDIA A100 80GB SXM data sheet\", \"kind\": \"assumed\"");
  EXPECT_EQ(load_device(path).hbm_peak_bytes_per_s.kind, ConstantKind::assumed);
  for (const ConstantKind kind :
       {ConstantKind::measured, ConstantKind::published, ConstantKind::assumed}) {
    EXPECT_FALSE(to_string(kind).empty());
  }
}

TEST(Device, UnknownKindOfAConstantIsRefusedWithTheNearOnes) {
  const std::string error =
      device_error("\"source\": \"NVIDIA A100 80GB SXM data sheet\"",
                   "\"source\": \"NVIDIA A100 80GB SXM data sheet\", \"kind\": \"mesured\"");
  expect_parts(error, {"/hbm_peak_bytes_per_s/kind", "mesured", "did you mean \"measured\""});
}

TEST(Device, LatenciesThatAFileLeavesOutAreAssumedInCyclesOfItsClock) {
  const DeviceSpec a100 = load_device("a100-sxm4-80gb"), h100 = load_device("h100-sxm");
  EXPECT_EQ(a100.l2_latency_s.kind, ConstantKind::published);
  EXPECT_EQ(a100.arithmetic_latency_s.kind, ConstantKind::assumed);
  EXPECT_DOUBLE_EQ(a100.arithmetic_latency_s.value * a100.sm_clock_hz.value, 4);
  EXPECT_DOUBLE_EQ(h100.arithmetic_latency_s.value * h100.sm_clock_hz.value, 4);
  for (const auto& [dtype, rate] : h100.matrix_flop_per_s) {
    EXPECT_GT(h100.matrix_latency_s.at(dtype).value, 0) << dtype;
  }
}

TEST(Device, NegativeAndZeroConstantsAreRefused) {
  expect_parts(device_error("\"value\": 2.62e-6", "\"value\": -2.62e-6"), {"/launch_s/value"});
  expect_parts(device_error("\"low\": 125", "\"low\": 0"), {"/shared_bytes_per_clock_per_sm/low"});
  expect_parts(device_error("\"sm_count\": 108", "\"sm_count\": 0"), {"/sm_count"});
  expect_parts(device_error("\"memory_bytes\": 85899345920", "\"memory_bytes\": 8.5e10"),
               {"/memory_bytes"});
}

TEST(Device, StreamAboveThePeakIsRefused) {
  expect_parts(device_error("\"high\": 1.91e12", "\"high\": 2.1e12"), {"/hbm_write_bytes_per_s"});
}

TEST(Device, UnknownDtypeOfMatrixUnitsIsRefused) {
  expect_parts(device_error("\"i8\": {", "\"int8\": {"), {"/matrix_flop_per_s/int8"});
}

TEST(Device, ComputeCapabilityIsMajorPointMinor) {
  for (const char* wrong : {"\"\"", "\"8\"", "\"8.\"", "\".0\"", "\"sm_80\"", "\"8.0.0\"", "8.0"}) {
    const std::string edited = std::string("\"compute_capability\": ") + wrong;
    expect_parts(device_error("\"compute_capability\": \"8.0\"", edited), {"/compute_capability"});
  }
}

TEST(Device, UnknownNameListsTheNearOnes) {
  expect_parts(config_error_of([] { load_device("a100"); }),
               {"did you mean \"a100-", "\"a100-sxm4-80gb\""});
  const std::string error = config_error_of([] { load_device("mi300x"); });
  expect_parts(error, {"built in: a100-", "h200-sxm"});
  expect_parts(config_error_of([] { load_device("./none.json"); }), {"none.json"});
}

TEST(NumericModes, AreTheSevenOfTheTable) {
  const auto names = [] {
    std::vector<std::string> all;
    for (const NumericMode& mode : numeric_modes()) all.push_back(mode.name);
    return all;
  }();
  EXPECT_EQ(names, (std::vector<std::string>{"hf_f32", "hf_bf16", "hf_f16", "bf16", "vllm_fp8",
                                             "sglang_fp8", "int8"}));
}

TEST(NumericModes, OnlyQuantisedModesRotateAndOnlyTransformersRoundsProducts) {
  for (const NumericMode& mode : numeric_modes()) {
    EXPECT_EQ(mode.hadamard, mode.quantised()) << mode.name;
    EXPECT_EQ(mode.pool_rounding == PoolRounding::storage_products, mode.name.starts_with("hf_"))
        << mode.name;
    if (!mode.quantised()) {
      EXPECT_EQ(mode.cache, mode.storage) << mode.name;
      EXPECT_EQ(mode.pooled, mode.storage) << mode.name;
    }
  }
  EXPECT_EQ(numeric_mode("vllm_fp8").scale, ScaleRule::power_of_two);
  EXPECT_EQ(numeric_mode("vllm_fp8").cache, DType::e4m3);
  EXPECT_EQ(numeric_mode("sglang_fp8").scale, ScaleRule::amax);
  EXPECT_EQ(numeric_mode("int8").cache, DType::i8);
}

TEST(NumericModes, UnknownOneListsTheNearOnes) {
  expect_parts(config_error_of([] { numeric_mode("vllm-fp8"); }), {"did you mean \"vllm_fp8\""});
  expect_parts(config_error_of([] { numeric_mode("zzzzzzzzzzz"); }), {"known: hf_f32"});
}

TEST(NearNames, ContainedNamesComeFirst) {
  const std::vector<std::string> known = {"pool", "append", "logits", "topk", "quantize_query"};
  EXPECT_EQ(near_names("quantize", known), (std::vector<std::string>{"quantize_query"}));
  EXPECT_EQ(near_names("poll", known), (std::vector<std::string>{"pool"}));
  EXPECT_TRUE(near_names("", {}).empty());
  EXPECT_TRUE(near_names("attention", known).empty());
}

RC_GTEST_PROP(NearNames, AKnownNameWithOneCharacterChangedIsFound, (std::size_t at, char c)) {
  for (const NumericMode& mode : numeric_modes()) {
    std::string typed = mode.name;
    typed[at % typed.size()] = c;
    std::vector<std::string> names;
    for (const NumericMode& each : numeric_modes()) names.push_back(each.name);
    const std::vector<std::string> near = near_names(typed, names);
    RC_ASSERT(std::find(near.begin(), near.end(), mode.name) != near.end());
  }
}

RC_GTEST_PROP(IndexerConfig, MultiplesOfKpoolAreValidAndOthersAreNot, ()) {
  IndexerConfig config;
  config.index_kpool = *rc::gen::inRange<std::int64_t>(1, 200);
  const auto pools = *rc::gen::inRange<std::int64_t>(1, 5000);
  config.index_topk = pools * config.index_kpool;
  validate(config, "test");
  RC_ASSERT(config.topk_pools() == pools);
  RC_PRE(config.index_kpool > 1);
  config.index_topk += *rc::gen::inRange<std::int64_t>(1, config.index_kpool);
  RC_ASSERT_THROWS_AS(validate(config, "test"), ConfigError);
}

TEST(IndexerConfig, SizesAtTheEdgeOf63Bits) {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  expect_parts(config_error_of([&] {
                 validate({1, largest, 4, 4, true}, "f.json: /indexer");
               }),
               {"f.json: /indexer"});
  expect_parts(config_error_of([&] {
                 validate({32, 128, largest, 1, true}, "f.json: /indexer");
               }),
               {"f.json: /indexer"});
  expect_parts(config_error_of([&] {
                 validate({32, 128, largest, largest, true}, "f.json: /indexer");
               }),
               {"f.json: /indexer"});
  EXPECT_NO_THROW(validate({1, 1, 1, 1, true}, "f.json: /indexer"));
}

}  // namespace
}  // namespace indexpool
