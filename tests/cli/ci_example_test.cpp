// The workflow in ci_example.yml is what users copy: its commands are run, on the kernel that the
// plugin header shows.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "program.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const std::size_t first = at + from.size(), last = text.find(to, first);
  EXPECT_NE(last, std::string::npos) << to;
  return text.substr(first, last - first);
}

// The commands of the steps, in order.
std::vector<std::string> steps() {
  std::vector<std::string> commands;
  std::istringstream lines(read_text(INDEXPOOL_TEST_DATA "/cli/ci_example.yml"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("run: ");
    if (at != std::string::npos) commands.push_back(line.substr(at + 5));
  }
  return commands;
}

// A checkout of the user's project, with ours in indexpool/ as built.
class Checkout {
 public:
  Checkout() {
    fs::create_directories(folder_.path() / "mine");
    fs::create_directories(folder_.path() / "indexpool/build");
    std::ofstream(folder_.file("indexpool/testbed")) << "#!/bin/sh\ntest \"$1\" = build\n";
    fs::permissions(folder_.file("indexpool/testbed"), fs::perms::owner_all);
    fs::create_symlink(INDEXPOOL_BUILD_DIR, folder_.path() / "indexpool/build/release");
    write_kernel("logits[i] > logits[j]");
  }
  // The example's kernel, its comparison as given.
  void write_kernel(const std::string& comparison) const {
    std::string source = between(read_text(INDEXPOOL_SOURCE_DIR "/verify/plugin.h"),
                                 "--- topk.cpp ---\n", "--- end ---");
    const std::string usual = "logits[i] > logits[j]";
    const std::size_t at = source.find(usual);
    ASSERT_NE(at, std::string::npos);
    source.replace(at, usual.size(), comparison);
    std::ofstream(folder_.file("mine/topk.cpp"), std::ios::trunc) << source;
  }
  // Exit codes of the steps; a step after one that failed is only run when it always is.
  std::vector<int> run_all() const {
    fs::remove_all(folder_.path() / "results");
    std::vector<int> codes;
    for (const std::string& step : steps()) codes.push_back(run(step));
    return codes;
  }
  int run(const std::string& step) const {
    const std::string line = "cd '" + folder_.path().string() +
                             "' && export PATH=/usr/local/bin:/usr/bin:/bin:"
                             "./indexpool/build/release/reports/cli GITHUB_STEP_SUMMARY=summary.md"
                             " && { " +
                             step + "; } >log.txt 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string text(const std::string& name) const { return read_text(folder_.file(name)); }

 private:
  Folder folder_;
};

TEST(CiExample, PassesACorrectKernelAndStopsAWrongOne) {
  const Checkout checkout;
  ASSERT_EQ(steps().size(), 5u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(checkout.run(steps()[static_cast<std::size_t>(i)]), 0) << checkout.text("log.txt");
  }
  // Once, by hand: the baseline of the first run, to be checked in.
  ASSERT_EQ(checkout.run("indexpool gate --records results/records.jsonl --baseline "
                         "indexpool-baseline.json --update-baseline"),
            0)
      << checkout.text("log.txt");
  EXPECT_EQ(checkout.run_all(), (std::vector<int>{0, 0, 0, 0, 0})) << checkout.text("log.txt");
  EXPECT_TRUE(contains(checkout.text("summary.md"), "The gate is open"));

  checkout.write_kernel("logits[i] < logits[j]");
  EXPECT_EQ(checkout.run_all(), (std::vector<int>{0, 0, 0, 1, 0})) << checkout.text("log.txt");
  EXPECT_TRUE(contains(checkout.text("summary.md"), "The gate is shut"));
  EXPECT_TRUE(contains(checkout.text("gate/gate.sarif"), "mine/topk.cpp"));
}

}  // namespace
}  // namespace indexpool::cli
