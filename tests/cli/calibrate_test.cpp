// indexpool calibrate, as a user runs it, on what a GPU would have measured.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/config.hpp"

#include "../model/synthetic_samples.hpp"
#include "program.hpp"

namespace indexpool::cli {
namespace {

// Of an H200 whose launches take twice as long as its file says.
std::string samples_file(const Folder& folder) {
  DeviceSpec truth = load_device("h200-sxm");
  truth.launch_s.value *= 2;
  std::ofstream(folder.path() / "samples.json")
      << to_json(calibration::SyntheticDevice(truth, 0.002, 7).samples());
  return folder.file("samples.json");
}

TEST(CalibrateCommand, WritesADeviceThatPredictTakes) {
  const Folder folder;
  const std::string out = folder.file("made/mine.json");
  const Outcome outcome =
      indexpool({"calibrate", "--samples", samples_file(folder), "--out", out, "--name", "mine"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const DeviceSpec base = load_device("h200-sxm"), made = load_device(out);
  EXPECT_EQ(made.name, "mine");
  EXPECT_NEAR(made.launch_s.value / base.launch_s.value, 2, 0.01);
  EXPECT_EQ(made.launch_s.kind, ConstantKind::measured);
  EXPECT_EQ(made.hbm_peak_bytes_per_s.kind, ConstantKind::published);
  EXPECT_EQ(indexpool({"predict", "--tokens", "1M", "--device", out}).code, 0);
}

TEST(CalibrateCommand, TheTableSaysWhatIsMeasuredAndWhatChanged) {
  const Folder folder;
  const Outcome outcome = indexpool({"calibrate", "--samples", samples_file(folder)});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"launch_s", "measured", "published", "h200-sxm: own measurement",
                           "what is not measured as in h200-sxm"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"samples.json"});  // nothing was asked for
}

TEST(CalibrateCommand, JsonHoldsEveryConstantWithItsSource) {
  const Folder folder;
  const Outcome outcome =
      indexpool({"calibrate", "--samples", samples_file(folder), "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  bool launch_seen = false;
  for (const auto& row : nlohmann::json::parse(outcome.out)) {
    EXPECT_LE(row.at("low").get<double>(), row.at("value").get<double>());
    EXPECT_LE(row.at("value").get<double>(), row.at("high").get<double>());
    EXPECT_FALSE(row.at("source").get<std::string>().empty());
    if (row.at("constant") != "launch_s") continue;
    launch_seen = true;
    EXPECT_NEAR(row.at("relative_change").get<double>(), 1, 0.01);
  }
  EXPECT_TRUE(launch_seen);
}

TEST(CalibrateCommand, SamplesAreSavedAsTheyCame) {
  const Folder folder;
  const std::string given = samples_file(folder), saved = folder.file("saved.json");
  ASSERT_EQ(indexpool({"calibrate", "--samples", given, "--save-samples", saved}).code, 0);
  EXPECT_EQ(read_text(saved), read_text(given));
}

TEST(CalibrateCommand, TheSameSamplesGiveTheSameBytes) {
  const Folder folder;
  const std::string samples = samples_file(folder);
  for (const char* name : {"a.json", "b.json"}) {
    ASSERT_EQ(indexpool({"calibrate", "--samples", samples, "--out", folder.file(name)}).code, 0);
  }
  EXPECT_EQ(read_text(folder.file("a.json")), read_text(folder.file("b.json")));
}

TEST(CalibrateCommand, WithoutABaseItIsNamedAfterTheGpu) {
  const Folder folder;
  const std::string out = folder.file("other.json");
  ASSERT_EQ(
      indexpool({"calibrate", "--samples", samples_file(folder), "--base", "none", "--out", out})
          .code,
      0);
  EXPECT_EQ(load_device(out).name, "nvidia-h200");
  EXPECT_FALSE(load_device(out).link_bytes_per_s.has_value());
}

TEST(CalibrateCommand, BadInputIsNamedWithExitCode2) {
  const Folder folder;
  const std::string samples = samples_file(folder);
  const Outcome base = indexpool({"calibrate", "--samples", samples, "--base", "h20-sxm"});
  EXPECT_EQ(base.code, 2);
  EXPECT_TRUE(contains(base.err, "did you mean \"h200-sxm\"")) << base.err;
  const Outcome wrong = indexpool({"calibrate", "--samples", samples, "--base", "a100-sxm4-80gb"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "compute capability")) << wrong.err;
  EXPECT_EQ(indexpool({"calibrate", "--samples", samples, "--quick"}).code, 2);
  EXPECT_EQ(indexpool({"calibrate", "--samples", folder.file("none.json")}).code, 2);
  std::ofstream(folder.path() / "broken.json") << read_text(samples).substr(0, 1000);
  const Outcome broken = indexpool({"calibrate", "--samples", folder.file("broken.json")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_TRUE(contains(broken.err, "broken.json")) << broken.err;
}

TEST(CalibrateCommand, WithoutAGpuItIsTheEnvironmentsFault) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "a GPU is here";
  const Folder folder;
  const Outcome outcome = indexpool({"calibrate", "--out", folder.file("mine.json")});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "CUDA")) << outcome.err;
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace indexpool::cli
