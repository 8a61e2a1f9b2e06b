// indexpool score, as a user runs it, on small tables of its own.
#include <cmath>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

// Copies at 2 us and 1.5 TB/s, with errors of up to 2 % that a formula draws.
std::string copies() {
  std::string text = "operation,kernel,read_bytes,written_bytes,time_us\n";
  for (int i = 0; i < 60; ++i) {
    const double bytes = 1e6 * std::pow(1.12, i);
    const double us = (2.6 + 2 * bytes / 1.5e6) * (1 + 0.02 * std::sin(37.0 * i));
    text += fmt::format("stream,copy,{:.0f},{:.0f},{:.4f}\n", bytes, bytes, us);
  }
  return text;
}

std::string written(const Folder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.path() / name) << text;
  return folder.file(name);
}

TEST(ScoreCommand, SaysWhatWasFittedOnWhichRowsAndHowFarTheOthersAreMissed) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const Outcome outcome = indexpool({"score", table, "--device", "a100-sxm4-80gb"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"60 rows, read as generic", "fitted now", "seed 1 does not hold out",
                           "held out:", "mean error", "in 90 % interval", "HBM"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(ScoreCommand, JsonHoldsTheErrorsOfAllRows) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const Outcome outcome =
      indexpool({"score", table, "--device", "a100-sxm4-80gb", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  const auto& all = rows.back();
  EXPECT_EQ(all.at("kernel"), "all");
  EXPECT_EQ(all.at("fitted_rows").get<int>() + all.at("held_out_rows").get<int>(), 60);
  EXPECT_LT(all.at("mean_error").get<double>(), 0.05);
}

TEST(ScoreCommand, SavedConstantsScoreAnotherTableWithoutAFit) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const std::string constants = folder.file("constants.json"), rows = folder.file("rows.csv");
  ASSERT_EQ(indexpool({"score", table, "--device", "a100-sxm4-80gb", "--save", constants, "--rows",
                       rows, "--out", folder.file("score.txt")})
                .code,
            0);
  EXPECT_TRUE(contains(read_text(rows), "measured_s"));
  const Outcome moved = indexpool(
      {"score", table, "--device", "h200-sxm", "--constants", constants, "--format", "json"});
  ASSERT_EQ(moved.code, 0) << moved.err;
  const auto all = nlohmann::json::parse(moved.out).back();
  EXPECT_EQ(all.at("held_out_rows"), 60);
  EXPECT_EQ(all.at("fitted_rows"), 0);
}

TEST(ScoreCommand, ThePageShowsTheRowsOfTheTable) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const std::string page = folder.file("page.html"), rows = folder.file("rows.csv");
  const std::vector<std::string> line = {"score",  table, "--device", "a100-sxm4-80gb",
                                         "--html", page,  "--rows",   rows};
  const Outcome outcome = indexpool(line);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string html = read_text(page);
  for (const char* part : {"Predicted against measured", "fitted now", "60 rows, read as generic",
                           "Held-out rows missed by most", "indexpool score", "hbm_share"}) {
    EXPECT_TRUE(contains(html, part)) << part;
  }
  // Each row's numbers are those of the CSV, in both plots.
  std::size_t marks = 0;
  for (std::size_t at = html.find("data-measured"); at != std::string::npos;
       at = html.find("data-measured", at + 1)) {
    ++marks;
  }
  EXPECT_GT(marks, 100u);
  EXPECT_LE(marks, 120u);  // of two plots; what falls on one pixel is drawn once
  EXPECT_TRUE(contains(html, "data-measured=\"3.9333e-06\""));  // of 1 MB, the first row
  ASSERT_EQ(indexpool(line).code, 0);
  EXPECT_EQ(read_text(page), html);
}

TEST(ScoreCommand, ExplainsEachTermWithItsSource) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const Outcome outcome = indexpool({"score", table, "--device", "a100-sxm4-80gb", "--explain"});
  for (const char* part : {"hbm_share", "fixed_s", "launch as the time was taken",
                           "RRZE-HPC/gpu-benches", "assumed", "sum"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(ScoreCommand, WrongInputIsNamedAndGivesExitCode2) {
  const Folder folder;
  const std::string table = written(folder, "copies.csv", copies());
  const std::string broken = written(folder, "broken.csv", copies() + "stream,copy,1,1,slow\n");
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Case cases[] = {
      {{"score", broken, "--device", "h200-sxm"}, "broken.csv:62:17: found \"slow\" for time_us"},
      {{"score", table}, "does not say which device"},
      {{"score", table, "--device", "h20-sxm"}, "h200-sxm"},
      {{"score", table, "--adapter", "genric"}, "did you mean \"generic\""},
      {{"score", table, "--device", "h200-sxm", "--held-out", "0"}, "--held-out"},
      {{"score", table, "--device", "h200-sxm", "--held-out", "1"}, "no row to fit"},
      {{"score", table, "--device", "h200-sxm", "--constants", "x", "--fit"}, "choose one"},
      {{"score", table, "--device", "h200-sxm", "--constants", "none"}, "unknown implementation"},
      {{"score", folder.file("absent.csv")}, "absent.csv"}};
  for (const Case& each : cases) {
    const Outcome outcome = indexpool(each.arguments);
    EXPECT_EQ(outcome.code, 2) << each.says;
    EXPECT_TRUE(contains(outcome.err, each.says)) << each.says << "\n" << outcome.err;
  }
}

TEST(ScoreCommand, HelpHasExamples) {
  const Outcome outcome = indexpool({"score", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "indexpool score gemm_perf.csv"));
}

}  // namespace
}  // namespace indexpool::cli
