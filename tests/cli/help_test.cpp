#include <gtest/gtest.h>

#include "program.hpp"

namespace indexpool::cli {
namespace {

constexpr const char* every_command[] = {"run",       "verify",  "check",       "export",  "gate",
                                         "mutants",   "field",   "faults",      "predict", "score",
                                         "calibrate", "measure", "utilisation", "report",  "list",
                                         "train",     "recall",  "strategies"};

TEST(Help, EveryCommandExplainsItselfWithExamples) {
  for (const char* command : every_command) {
    const Outcome outcome = indexpool({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_TRUE(contains(outcome.out, std::string("indexpool ") + command)) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "Examples:")) << outcome.out;
    const bool writes_files_only = std::string(command) == "export";
    EXPECT_TRUE(writes_files_only || contains(outcome.out, "--format")) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Help, TheProgramListsItsCommandsAndExitCodes) {
  const Outcome outcome = indexpool({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : every_command) EXPECT_TRUE(contains(outcome.out, part)) << part;
  EXPECT_TRUE(contains(outcome.out, "4 untrusted"));
}

TEST(Help, TheSetUpScriptPassesOnEveryCommand) {
  const std::string script = read_text(INDEXPOOL_SOURCE_DIR "/testbed");
  for (const std::string command : every_command) {
    const bool listed =
        contains(script, " " + command + " |") || contains(script, " " + command + ")");
    EXPECT_TRUE(listed) << command;
  }
}

TEST(Help, VersionIsANumber) {
  const Outcome outcome = indexpool({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "0.")) << outcome.out;
}

TEST(Help, WithoutACommandItIsAUsageError) {
  const Outcome outcome = indexpool({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(contains(outcome.err, "--help")) << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
