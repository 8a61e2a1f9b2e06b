// indexpool mutants, run as a user runs it.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

using Json = nlohmann::json;

TEST(MutantsCommand, SaysWhichChecksNoticeAMutant) {
  const Outcome outcome = indexpool({"mutants", "--id", "scale_447", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["mutant"], "scale_447");
  EXPECT_EQ(rows[0]["result"], "killed");
  EXPECT_GE(rows[0]["scale"], 1);
  EXPECT_TRUE(rows[0]["tail"].is_null());
}

TEST(MutantsCommand, ScoresAClass) {
  const Outcome outcome = indexpool({"mutants", "--class", "checksum", "--quick"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "checksum_tree_starts_late")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "100.0")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "10 of 10 mutants killed")) << outcome.out;
}

// scale / 224 halves what the codes can tell apart: no rule that looks at values minds.
TEST(MutantsCommand, ShowsWhatOtherRulesLetThrough) {
  const Folder folder;
  const Outcome outcome =
      indexpool({"mutants", "--id", "scale_224", "--rules", "--out", folder.file("out")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "0 of 1")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "DeepGEMM")) << outcome.out;
  const Json rules = Json::parse(read_text(folder.file("out/rules.json")));
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0]["ours"], "noticed");
  EXPECT_EQ(rules[0]["calc_diff"], "let through");
  EXPECT_EQ(rules[0]["overlap_0.9"], "-");
  EXPECT_TRUE(contains(read_text(folder.file("out/mutants.md")), "| scale_224 |"));
  EXPECT_TRUE(contains(read_text(folder.file("out/mutants.csv")), "scale_224,scale,pool"));
}

TEST(MutantsCommand, ListsAnEquivalentMutantWithItsProof) {
  const Outcome outcome = indexpool({"mutants", "--id", "amax_tree_backwards"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "is equivalent: A butterfly")) << outcome.out;
}

TEST(MutantsCommand, NamesNearClassesAndMutants) {
  Outcome outcome = indexpool({"mutants", "--class", "scael"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "scale")) << outcome.err;
  outcome = indexpool({"mutants", "--id", "scale_44"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "scale_447")) << outcome.err;
  outcome = indexpool({"mutants", "--id", "scale_447", "--class", "overflow"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "is not of class overflow")) << outcome.err;
}

TEST(MutantsCommand, SaysHowToBuildMutantsThatAreAbsent) {
  const Outcome outcome = indexpool({"mutants", "--module", "/nowhere/mutants.so"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "--target indexpool_mutants")) << outcome.err;
}

TEST(MutantsCommand, RefusesASharedObjectThatHoldsNone) {
  const Folder folder;
  std::ofstream(folder.file("text.so")) << "not a shared object";
  const Outcome outcome = indexpool({"mutants", "--module", folder.file("text.so")});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "cannot load")) << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
