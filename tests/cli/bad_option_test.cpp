#include <fstream>

#include <gtest/gtest.h>

#include "program.hpp"

namespace indexpool::cli {
namespace {

struct BadLine {
  std::vector<std::string> arguments;
  const char* said;  // part of the message
};

// Exit code 2, a message, nothing on stdout.
void expect_usage_error(const BadLine& line) {
  std::string shown;
  for (const std::string& word : line.arguments) shown += word + ' ';
  const Outcome outcome = indexpool(line.arguments);
  EXPECT_EQ(outcome.code, 2) << shown << outcome.err;
  EXPECT_EQ(outcome.out, "") << shown;
  EXPECT_TRUE(contains(outcome.err, line.said)) << shown << outcome.err;
}

TEST(BadOption, UnknownNamesListNearOnes) {
  const BadLine lines[] = {
      {{"verfy"}, "did you mean verify?"},
      {{"verify", "--sute", "smoke"}, "did you mean --suite or --out?"},
      {{"list", "--format", "jsn"}, "did you mean json or csv?"},
      {{"list", "filles"}, "did you mean fills"},
      {{"list", "zzzzzzzz"}, "Known: models, devices"},
      {{"list", "fills", "modes"}, "did not expect 'modes'"},
      {{"verify", "--target", "smit"}, "did you mean simt?"},
      {{"verify", "--suite", "smokes"}, "smoke"},
      {{"verify", "--attention", "hybird"}, "did you mean hybrid?"},
      {{"run", "--attention", "feedbak"}, "did you mean feedback?"},
      {{"verify", "--mode", "vlm_fp8"}, "vllm_fp8"},
      {{"verify", "--fill", "norml"}, "did you mean normal"},
      {{"predict", "--model", "glm-5.3-flas"}, "glm-5.3-flash"},
      {{"predict", "--device", "a100"}, "a100-sxm4-80gb"},
      {{"run", "--device", "h200"}, "h200-sxm"},
  };
  for (const BadLine& line : lines) expect_usage_error(line);
}

TEST(BadOption, ASuiteIsReadToItsEndBeforeAnythingRuns) {
  const Folder folder;
  const std::string suite = folder.file("own.json");
  std::ofstream(suite) << R"({"name": "own", "why": "test",
                              "cases": [{"lengths": [[9]], "fill": ["normal", "qqqqqqqqqqqq"]}]})";
  expect_usage_error({{"verify", "--suite", suite, "--out", folder.file("out")},
                      "own.json: there is no fill 'qqqqqqqqqqqq'; the fills are: normal"});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"own.json"});
}

TEST(BadOption, ImpossibleProblemsAreRefused) {
  const BadLine lines[] = {
      {{"verify", "--kpool", "3", "--topk", "2048"}, "index_topk"},
      {{"verify", "--lengths", "0"}, "token"},
      {{"verify", "--lengths", "0,0"}, "token"},
      {{"verify", "--lengths", "-4"}, "--lengths"},
      {{"verify", "--lengths", "2147483647,2147483647", "--heads", "4611686018427387904"},
       "63 bits"},
      {{"verify", "--lengths", "8", "--drafts", "7"}, "drafts"},
      {{"verify", "--lengths", "8", "--page", "0"}, "page"},
      {{"verify", "--lengths", "8", "--page", "2147483647"}, "GiB"},
      {{"verify", "--lengths", "8", "--topk", "2147483644"}, "GiB"},
      {{"verify", "--lengths", "8", "--seed", "-1"}, "found -1, expected 0 or more"},
      {{"verify", "--heads", "0"}, "command line/index_n_heads"},
      {{"verify", "--heads", "many"}, "--heads"},
      {{"verify", "--head-dim", "96"}, "power of two"},
      {{"verify", "--suite", "/"}, "cannot read the suite file"},
      {{"predict", "--tokens", "0"}, "--tokens"},
      {{"predict", "--tokens", "1.5M"}, "--tokens"},
  };
  for (const BadLine& line : lines) expect_usage_error(line);
}

TEST(BadOption, ContradictionsAreRefused) {
  const BadLine lines[] = {
      {{"verify", "--suite", "smoke", "--lengths", "8"}, "exclude each other"},
      {{"run", "--attention", "hybrid", "--policy", "gated"}, "leave --policy and --case out"},
      {{"verify", "--attention", "hybrid", "--mode", "int8"}, "known for attention"},
      {{"verify", "--attention", "hybrid", "--policy", "gated"},
       "attention is a problem by itself"},
      {{"verify", "--suite", "smoke", "--case", golden("fp8_small")}, "exclude each other"},
      {{"verify", "--drafts", "2"}, "needs a problem or a case"},
      {{"verify", "--resume"}, "--out"},
      {{"verify", "--measure"}, "--target cuda"},
      {{"report"}, "records"},
  };
  for (const BadLine& line : lines) expect_usage_error(line);
}

}  // namespace
}  // namespace indexpool::cli
