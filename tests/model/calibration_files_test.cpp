// Samples and devices as files: what is written is read, what is wrong is named with its place.
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "indexpool/model/calibration/samples.hpp"
#include "indexpool/model/data.hpp"
#include "indexpool/model/device_json.hpp"
#include "indexpool/model/error.hpp"

#include "expect_error.hpp"
#include "synthetic_samples.hpp"
#include "temporary_folder.hpp"

namespace indexpool::calibration {
namespace {

Samples noisy(std::uint64_t seed) {
  return SyntheticDevice(load_device("h200-sxm"), 0.2, seed).samples();
}

RC_GTEST_PROP(SamplesFile, EveryBitComesBack, (std::uint64_t seed)) {
  const TemporaryFolder folder;
  const Samples written = noisy(seed);
  write_bytes(folder / "samples.json", to_json(written));
  RC_ASSERT(read_samples(folder / "samples.json") == written);
}

std::string error_with(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  std::string text = to_json(noisy(1));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  write_bytes(folder / "samples.json", text);
  return config_error_of([&] { read_samples(folder / "samples.json"); });
}

TEST(SamplesFile, WhatIsWrongIsNamedWithItsPlace) {
  expect_parts(error_with("\"access\":\"read\"", "\"access\":\"reed\""),
               {"samples.json", "/streams/0/access", "reed", "read, write, copy"});
  expect_parts(error_with("\"sm_count\":132", "\"sm_count\":0"), {"/device/sm_count"});
  expect_parts(error_with("\"steps\":4096", "\"steps\":-1"), {"/chains/0/steps"});
  expect_parts(error_with("\"footprint_bytes\"", "\"footprint\""),
               {"/cached_reads/0", "footprint"});
  expect_parts(error_with("\"launches\": [", "\"lunches\": ["), {"lunches", "launches"});
  expect_parts(error_with("\"seconds\":[", "\"seconds\":[1.0,"), {"/streams/0/seconds"});
  expect_parts(error_with("\"date\":\"2026-01-02\"", "\"date\":\"\""), {"/device/date"});
}

TEST(SamplesFile, PercentilesThatDoNotHoldTheMedianAreRefused) {
  const TemporaryFolder folder;
  Samples samples = noisy(1);
  samples.launches[0].seconds = {2, 3, 4};
  write_bytes(folder / "samples.json", to_json(samples));
  expect_parts(config_error_of([&] { read_samples(folder / "samples.json"); }),
               {"/launches/0/seconds", "between its percentiles"});
}

TEST(DeviceFile, EveryBuiltInDeviceIsWrittenWithAllItsKeysAndReadBack) {
  for (const DataFile& file : embedded_devices()) {
    const TemporaryFolder folder;
    const std::string path = folder / "device.json";
    const DeviceSpec device = load_device(std::string(file.name));
    write_bytes(path, to_json(device));
    EXPECT_EQ(to_json(load_device(path)), to_json(device)) << file.name;
    const auto before = nlohmann::json::parse(file.text);
    const auto after = nlohmann::json::parse(to_json(device));
    for (const auto& [key, value] : before.items()) {
      ASSERT_TRUE(after.contains(key)) << file.name << " " << key;
      if (value.contains("value")) {
        for (const char* part : {"value", "low", "high", "source"}) {
          EXPECT_EQ(after[key][part], value[part]) << file.name << " " << key;
        }
      } else if (!value.is_object()) {
        EXPECT_EQ(after[key], value) << file.name << " " << key;
      }
    }
  }
}

TEST(DeviceFile, ConstantsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  const auto constants = named_constants(load_device("h200-sxm"));
  for (const NamedConstant& each : constants) names.insert(each.name);
  EXPECT_EQ(names.size(), constants.size());
  EXPECT_TRUE(names.contains("matrix_flop_per_s/bf16"));
}

}  // namespace
}  // namespace indexpool::calibration
