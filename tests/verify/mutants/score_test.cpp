#include "indexpool/verify/mutants/score.hpp"

#include <gtest/gtest.h>

namespace indexpool::verify {
namespace {

Mutant mutant(const char* fault, const char* equivalent = "") {
  Mutant row;
  row.id = fault;
  row.fault = fault;
  row.equivalent = equivalent;
  return row;
}

TEST(Score, CountsByClassAndInAllWithoutEquivalentOnes) {
  const Mutant a = mutant("arithmetic"), b = mutant("rounding"), c = mutant("rounding", "proof");
  const std::vector<Fate> fates{{&a, true, true}, {&a, true, false}, {&b, true, true}, {&c}};
  const auto scores = scores_of(fates);
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[0].name, "arithmetic");
  EXPECT_DOUBLE_EQ(scores[0].percent(), 50);
  EXPECT_EQ(scores[0].killed, 2);
  EXPECT_EQ(scores[1].counted(), 1);
  EXPECT_DOUBLE_EQ(scores[1].percent(), 100);
  EXPECT_EQ(scores[2].name, "all");
  EXPECT_EQ(scores[2].mutants, 4);
  EXPECT_EQ(scores[2].equivalent, 1);
  EXPECT_EQ(scores[2].killed_by_its_check, 2);
}

// One survivor in a hundred is bearable, but not one of a class on which the rest depends.
TEST(Score, OneSurvivorOfACompleteClassIsTooMany) {
  const Mutant overflow = mutant("overflow"), arithmetic = mutant("arithmetic");
  std::vector<Fate> fates(100, Fate{&arithmetic, true, true});
  fates.push_back({&overflow, true, true});
  EXPECT_EQ(why_not_enough(scores_of(fates), fates), "");
  fates[0] = {&arithmetic, false, false};
  EXPECT_EQ(why_not_enough(scores_of(fates), fates), "");
  fates.back() = {&overflow, true, false};
  EXPECT_NE(why_not_enough(scores_of(fates), fates).find("overflow"), std::string::npos);
}

TEST(Score, LessThanNinetyEightPercentIsTooFew) {
  const Mutant arithmetic = mutant("arithmetic");
  std::vector<Fate> fates(100, Fate{&arithmetic, true, true});
  fates[0] = fates[1] = fates[2] = {&arithmetic, false, false};
  EXPECT_NE(why_not_enough(scores_of(fates), fates).find("98"), std::string::npos);
}

TEST(Score, AnEquivalentMutantThatDiesDisprovesItsProof) {
  const Mutant wrong = mutant("arithmetic", "proof");
  const std::vector<Fate> fates{{&wrong, true, true}};
  EXPECT_NE(why_not_enough(scores_of(fates), fates).find("equivalent"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::verify
