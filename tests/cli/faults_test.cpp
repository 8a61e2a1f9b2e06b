#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

TEST(FaultsCommand, ExplainsItselfWithExamplesSitesAndModels) {
  const Outcome outcome = indexpool({"faults", "--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* part :
       {"indexpool faults", "Examples:", "--format", "unsealed_inputs", "random_word", "--clean"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << '\n' << outcome.out;
  }
}

TEST(FaultsCommand, BadValuesAreUsageErrors) {
  const struct {
    std::vector<std::string> arguments;
    const char* said;
  } lines[] = {{{"faults", "--site", "code"}, "did you mean fresh_codes or codes?"},
               {{"faults", "--model", "singel"}, "did you mean single"},
               {{"faults", "--mode", "vlm_fp8"}, "vllm_fp8"},
               {{"faults", "--trials", "0"}, "trials: found 0"},
               {{"faults", "--trials", "many"}, "--trials"},
               {{"faults", "--clean", "-1"}, "--clean"},
               {{"faults", "--threads", "-1"}, "threads"},
               {{"faults", "--format", "jsn"}, "did you mean json"},
               {{"faults", "--sites", "codes"}, "did you mean --site"}};
  for (const auto& line : lines) {
    const Outcome outcome = indexpool(line.arguments);
    EXPECT_EQ(outcome.code, 2) << line.said << outcome.err;
    EXPECT_EQ(outcome.out, "") << line.said;
    EXPECT_TRUE(contains(outcome.err, line.said)) << line.said << '\n' << outcome.err;
  }
}

TEST(FaultsCommand, JsonHasARowPerSiteModelAndLayer) {
  const Outcome outcome =
      indexpool({"faults", "--site", "codes", "--model", "single", "--model", "zero", "--trials",
                 "60", "--clean", "60", "--format", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2u * 4);  // form, pair, crc and all together
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("site"), "codes");
    EXPECT_EQ(row.at("trials"), 60);
    if (row.at("layer") != "layered") continue;
    EXPECT_EQ(row.at("coverage"), 1);
    EXPECT_EQ(row.at("stored_bytes_per_page"), 16);
    EXPECT_EQ(row.at("false_alarms"), 0);
  }
}

TEST(FaultsCommand, TheReportFolderHoldsRecordsThatRepeatIt) {
  const Folder folder;
  const std::string out = folder.file("report");
  const std::vector<std::string> line = {"faults", "--site", "scales", "--trials", "40", "--clean",
                                         "60",     "--seed", "4",      "--out",    out};
  const Outcome outcome = indexpool(line);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Stored: 16 of")) << outcome.out;
  const std::string records = read_text(out + "/records.jsonl");
  EXPECT_TRUE(contains(records, "indexpool faults --trials 40 --clean 60 --seed 4 --site scales"))
      << records;
  EXPECT_TRUE(contains(read_text(out + "/coverage.csv"), "scales,stripe,crc,40,")) << out;
  EXPECT_EQ(indexpool(line).out, outcome.out);
}

}  // namespace
}  // namespace indexpool::cli
