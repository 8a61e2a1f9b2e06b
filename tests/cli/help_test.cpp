#include <gtest/gtest.h>

#include "program.hpp"

namespace indexpool::cli {
namespace {

TEST(Help, EveryCommandExplainsItselfWithExamples) {
  for (const char* command : {"run", "verify", "predict", "report", "list"}) {
    const Outcome outcome = indexpool({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_TRUE(contains(outcome.out, std::string("indexpool ") + command)) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "Examples:")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "--format")) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Help, TheProgramListsItsCommandsAndExitCodes) {
  const Outcome outcome = indexpool({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"run", "verify", "predict", "report", "list", "4 untrusted"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part;
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
