// indexpool check --plugin, run as a user runs it.
#include <gtest/gtest.h>

#include "../../cli/program.hpp"

namespace indexpool::cli {
namespace {

std::string plugin(const std::string& name) {
  return std::string(PLUGIN_FOLDER) + "/" + name + ".so";
}

std::vector<std::string> with_small_problem(std::vector<std::string> arguments) {
  for (const char* word :
       {"--heads", "2", "--head-dim", "32", "--topk", "8", "--lengths", "13,6"}) {
    arguments.emplace_back(word);
  }
  return arguments;
}

TEST(CheckPlugin, ARightPluginPassesTheSmokeSuite) {
  const Outcome outcome = indexpool({"check", "--plugin", plugin("good"), "--suite", "smoke"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Passed."));
}

TEST(CheckPlugin, ACrashIsAFailedVerdictInEachProblemOfASuite) {
  const Folder folder;
  const Outcome outcome = indexpool({"check", "--plugin", plugin("null_write"), "--out",
                                     folder.file("report"), "--format", "csv"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::string records = read_text(folder.path() / "report" / "records.jsonl");
  std::size_t crashes = 0;
  for (std::size_t at = 0; (at = records.find("through a null pointer", at)) != std::string::npos;
       ++at) {
    ++crashes;
  }
  EXPECT_GE(crashes, 4u) << "one in each problem of the smoke suite";
  EXPECT_TRUE(contains(read_text(folder.path() / "report" / "report.html"), "null_write"));
}

TEST(CheckPlugin, TheRepeatLineRepeats) {
  const Outcome first = indexpool(with_small_problem({"check", "--plugin", plugin("wrong_value")}));
  EXPECT_EQ(first.code, 1);
  const std::string mark = "repeat: indexpool ";
  const std::size_t at = first.out.find(mark);
  ASSERT_NE(at, std::string::npos) << first.out;
  const std::string line =
      first.out.substr(at + mark.size(), first.out.find('\n', at) - at - mark.size());
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  EXPECT_EQ(indexpool(words).out, first.out);
}

TEST(CheckPlugin, ALimitEndsWhatDoesNotEnd) {
  const Outcome outcome = indexpool(
      with_small_problem({"check", "--plugin", plugin("busy_loop"), "--time-limit", "1.5"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.out, "still ran after 1.5 s")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "--time-limit 1.5")) << outcome.out;
}

TEST(CheckPlugin, WhatCannotBeUsedIsOneErrorWhateverTheSuite) {
  const Outcome outcome = indexpool({"check", "--plugin", plugin("wrong_abi"), "--suite", "ci"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.out, "1 of 1 records")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "built for plugin ABI 42, this program has 1"));
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string said;
};

TEST(CheckPlugin, MistakesOfTheUserAreExitCode2AndSayWhatToDo) {
  const Mistake mistakes[] = {
      {{"--plugin", "/nowhere/libmine.so"}, "/nowhere/libmine.so: no such file"},
      {{"--plugin", PLUGIN_HEADER}, "not an ELF file"},
      {{"--plugin", "/dev"}, "not a regular file"},
      {{"--plugin", plugin("good"), "--suite", "smok"}, "smoke"},
      {{"--plugin", plugin("good"), "--suite", "ci", "--lengths", "5"}, "exclude each other"},
      {{"--plugin", plugin("good"), "--case", "/nowhere/case.safetensors"}, "/nowhere"},
      {{"--plugin", plugin("good"), "--drafts", "2"}, "--drafts means nothing to a plugin"},
      {{"--plugin", plugin("good"), "--time-limit", "0"}, "--time-limit"},
      {{"--plugin", plugin("good"), "--memory-limit", "1K"}, "at least 16M"},
      {{"--plugin", plugin("good"), "--tail", "fixed"}, "--tail and --plugin exclude each other"},
      {{"--suite", "smoke"}, "--suite needs --plugin"},
      {{}, "nothing to check"},
      {{"--plugn", "x"}, "did you mean --plugin"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments{"check"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Outcome outcome = indexpool(arguments);
    EXPECT_EQ(outcome.code, 2) << mistake.said << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, mistake.said)) << outcome.err;
  }
}

}  // namespace
}  // namespace indexpool::cli
