// The tester tested: each mutant must be killed, by the check its row names.
#include <cstdio>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/mutants/kill.hpp"
#include "indexpool/verify/mutants/module.hpp"

namespace indexpool::verify {
namespace {

const MutantModule& module() {
  static const MutantModule loaded(INDEXPOOL_MUTANTS_MODULE);
  return loaded;
}

class Mutants : public testing::TestWithParam<MutantClass> {};

TEST_P(Mutants, AreKilledByTheirChecks) {
  for (const Mutant& mutant : mutant_table()) {
    if (mutant.fault != GetParam().name) continue;
    const MutantRun run = run_mutant(mutant, module().code(mutant.id), {});
    if (!mutant.equivalent.empty()) {
      EXPECT_FALSE(run.killed()) << mutant.id << " is said to be equivalent, but " << run.reason;
      continue;
    }
    std::printf("%s: %s\n", mutant.id.c_str(), run.reason.c_str());
    EXPECT_TRUE(killed_as_named(mutant, run))
        << mutant.id << " (" << mutant.why << ") should fail the check " << mutant.killed_by
        << ", but " << (run.killed() ? run.reason : "nothing failed");
  }
}

INSTANTIATE_TEST_SUITE_P(Class, Mutants,
                         testing::ValuesIn(mutant_classes().begin(), mutant_classes().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Whatever a mutant is killed on must let the kernels pass that have no fault.
TEST(Unmutated, NothingIsKilledOnAnySetOfProblems) {
  std::set<MutantSetting> settings;
  for (const Mutant& mutant : mutant_table()) settings.insert(MutantSetting(mutant));
  for (const MutantSetting& setting : settings) {
    const MutantRun run = run_unmutated(setting, {true, false});
    EXPECT_FALSE(run.killed()) << setting.problems << ": " << run.reason;
  }
}

TEST(MutantModule, HoldsTheWholeTable) {
  const auto table = mutant_table();
  EXPECT_EQ(module().all().size(), table.size());
  for (const Mutant& mutant : table) {
    const MutantCode& code = module().code(mutant.id);
    EXPECT_EQ(code.kernel == nullptr, mutant.kernel == "planner") << mutant.id;
    EXPECT_EQ(code.planner == nullptr, mutant.kernel != "planner") << mutant.id;
  }
}

TEST(MutantModule, SaysHowToBuildWhatIsNotThere) {
  try {
    const MutantModule absent("/nowhere/indexpool_mutants.so");
    ADD_FAILURE();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("--target indexpool_mutants"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("/nowhere"), std::string::npos);
  }
}

}  // namespace
}  // namespace indexpool::verify
