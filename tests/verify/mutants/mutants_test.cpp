// The tester tested: each mutant must be killed, by the check its row names.
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "indexpool/verify/verify.hpp"

#include "mutant.hpp"

namespace indexpool::verify {
namespace {

const Suite& problems() {
  static const Suite suite = load_suite(INDEXPOOL_MUTANT_PROBLEMS);
  return suite;
}

// Checks that failed, with how many problems each failed on. A refusal by the executor counts as
// the check "executor".
using Kills = std::map<std::string, int>;

void add_kills(const std::vector<Record>& records, Kills& kills) {
  std::set<std::string> failed;
  for (const Record& record : records) {
    if (record.verdict.status == Status::error) failed.insert("executor");
    for (const Check& check : record.verdict.checks) {
      if (check.status == Status::failed) failed.insert(check.name);
    }
  }
  for (const std::string& check : failed) ++kills[check];
}

std::string line_of(const std::string& name, const Kills& kills) {
  std::string line = name + ":";
  for (const auto& [check, count] : kills) line += " " + check + " (" + std::to_string(count) + ")";
  return line;
}

Kills run(const Options& options) {
  Kills kills;
  for (const Problem& problem : problems().problems) {
    add_kills(verify_problem(problem, options), kills);
  }
  return kills;
}

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, IsKilledByItsCheck) {
  const Mutant& mutant = GetParam();
  Options options;
  options.target = mutant.target;
  options.extra_kernels = mutant_kernels();
  options.all_lane_orders = mutant.killed_by == "lane_order";
  const Kills kills = run(options);
  std::printf("%s\n", line_of(std::string(mutant.name), kills).c_str());
  EXPECT_TRUE(kills.contains(std::string(mutant.killed_by)))
      << mutant.name << " (" << mutant.why << ") should fail the check " << mutant.killed_by
      << ", but: " << line_of("failed", kills);
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, testing::ValuesIn(mutants().begin(), mutants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Mutants, TheRealKernelsSurvive) {
  const Kills kills = run({});
  EXPECT_TRUE(kills.empty()) << line_of("failed", kills);
}

}  // namespace
}  // namespace indexpool::verify
