// Each corruption of an answer that passes is refused, by the check that is named for it and with a
// message that says where.
#include "corruptions.hpp"

#include <set>

#include <gtest/gtest.h>

namespace indexpool::verify {
namespace {

std::vector<Corruption> all_corruptions() {
  std::vector<Corruption> all;
  for (const auto part :
       {pool_corruptions(), query_and_logit_corruptions(), selection_corruptions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class Corrupted : public testing::TestWithParam<Corruption> {};

TEST_P(Corrupted, AnswersAreRefusedWhereTheyAreWrong) {
  const Corruption& corruption = GetParam();
  Answered answers = answered(corruption.golden);
  corruption.apply(answers);
  const auto records = check_foreign(answers.foreign, answers.outputs, corruption.contract, {});
  const Record* record = record_of(records, corruption.op);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(to_string(record->verdict.status), "failed") << record->verdict.reason;
  const Check* check = check_of(*record, corruption.check);
  ASSERT_NE(check, nullptr) << "no check " << corruption.check;
  EXPECT_GT(check->violations, 0) << check->name << " saw nothing; " << record->verdict.reason;
  EXPECT_NE(check->reason.find(corruption.place), std::string::npos)
      << "expected '" << corruption.place << "' in: " << check->reason;
  EXPECT_NE(record->verdict.reason.find(": "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, Corrupted, testing::ValuesIn(all_corruptions()),
                         [](const auto& tested) {
                           return std::string(to_string(tested.param.op)) + "_" + tested.param.name;
                         });

// What the rows start from passes under their contracts, or they would prove nothing. (Two of them
// claim a form or a layout that the answers don't have.)
TEST(Corruptions, StartFromAnswersThatPass) {
  std::set<std::string> goldens;
  for (const Corruption& corruption : all_corruptions()) goldens.insert(corruption.golden);
  for (const std::string& golden : goldens) {
    const Answered answers = answered(golden);
    for (const Record& record : check_foreign(answers.foreign, answers.outputs, {}, {})) {
      EXPECT_EQ(to_string(record.verdict.status), "passed") << golden << ", " << record.op;
    }
  }
}

TEST(Corruptions, AreMoreThanFifty) { EXPECT_GE(all_corruptions().size(), 50u); }

}  // namespace
}  // namespace indexpool::verify
