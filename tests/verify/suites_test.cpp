#include <set>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

TEST(Suites, SmokeCiAndFullAreBuiltIn) {
  const auto names = suite_names();
  const std::set<std::string> found(names.begin(), names.end());
  for (const char* name : {"smoke", "ci", "full"}) {
    EXPECT_TRUE(found.contains(name)) << name;
    EXPECT_FALSE(load_suite(name).problems.empty()) << name;
  }
}

TEST(Suites, CiCoversEveryModeEveryFillAndEveryDraftCount) {
  std::set<std::string> modes, fills;
  std::set<std::int64_t> drafts;
  for (const Problem& problem : load_suite("ci").problems) {
    modes.insert(problem.mode);
    fills.insert(problem.fill);
    drafts.insert(problem.schedule.drafts);
  }
  for (const NumericMode& mode : numeric_modes())
    EXPECT_TRUE(modes.contains(mode.name)) << mode.name;
  for (const std::string& fill : fill_names()) EXPECT_TRUE(fills.contains(fill)) << fill;
  for (std::int64_t n = 0; n <= 6; ++n) EXPECT_TRUE(drafts.contains(n)) << n;
}

TEST(Suites, EveryFillOfASuiteExists) {
  for (const std::string& name : suite_names()) {
    for (const Problem& problem : load_suite(name).problems) {
      EXPECT_NO_THROW(fill_purpose(problem.fill)) << name << ": " << problem.fill;
    }
  }
}

TEST(Suites, UnknownNameListsNearOnes) {
  try {
    load_suite("smoek");
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("smoke"), std::string::npos) << error.what();
  }
  EXPECT_THROW(load_suite("/nowhere/suite.json"), ConfigError);
}

TEST(Suites, AFolderIsNotASuite) { EXPECT_THROW(load_suite("/"), ConfigError); }

}  // namespace
}  // namespace indexpool::verify
