// The rules of public projects, by hand-worked values and by what defines them.
#include "indexpool/verify/rules.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify {
namespace {

using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(CalcDiff, IsOneMinusTwiceTheProductOverTheSquares) {
  EXPECT_DOUBLE_EQ(calc_diff(Values{1, 2}, Values{1, 2}), 0);
  // 1 - 2 (3 * 1) / (9 + 1)
  EXPECT_DOUBLE_EQ(calc_diff(Values{3}, Values{1}), 0.4);
  EXPECT_DOUBLE_EQ(calc_diff(Values{1, 0}, Values{0, 1}), 1);
  EXPECT_DOUBLE_EQ(calc_diff(Values{0, 0}, Values{0, 0}), 0);
  EXPECT_TRUE(std::isnan(calc_diff(Values{nan, 1}, Values{1, 1})));
}

// Why it lets faults through: what is wrong in few elements drowns in the energy of the others.
TEST(CalcDiff, DoesNotSeeOneWrongElementAmongThousands) {
  Values expected(4096, 1), found(4096, 1);
  found[7] = -1;
  EXPECT_LT(calc_diff(found, expected), 1e-3);
  EXPECT_FALSE(all_close(found, expected, 0.1, 0.1));
}

TEST(AllClose, AllowsAbsoluteAndRelativeErrorTogether) {
  EXPECT_TRUE(all_close(Values{1.2}, Values{1}, 0.1, 0.1 + 1e-9));
  EXPECT_FALSE(all_close(Values{1.21}, Values{1}, 0.1, 0.1));
  EXPECT_TRUE(all_close(Values{infinity}, Values{infinity}, 0, 0));
  EXPECT_FALSE(all_close(Values{nan}, Values{1}, 0.1, 0.1));
  EXPECT_FALSE(all_close(Values{1, 2}, Values{1}, 0.1, 0.1));
}

TEST(LargestError, IsInfiniteForNaN) {
  EXPECT_DOUBLE_EQ(largest_error(Values{1, 5}, Values{2, 7}), 2);
  EXPECT_EQ(largest_error(Values{nan}, Values{2}), infinity);
  EXPECT_EQ(largest_error(Values{infinity}, Values{infinity}), 0);
}

TEST(RelativelyEqual, AllowsATenthOfBothMagnitudes) {
  EXPECT_TRUE(relatively_equal(Values{1.2}, Values{1}, 0.1));
  EXPECT_FALSE(relatively_equal(Values{1.3}, Values{1}, 0.1));
  EXPECT_FALSE(relatively_equal(Values{1e-3}, Values{0}, 0.1));
  EXPECT_TRUE(relatively_equal(Values{0}, Values{-0.0}, 0.1));
  EXPECT_FALSE(relatively_equal(Values{nan}, Values{nan}, 0.1));
}

TEST(IndexOverlap, CountsRightIndicesInAnyOrderAndNoPadding) {
  EXPECT_DOUBLE_EQ(index_overlap(Values{3, 1, -1}, Values{1, 3, -1}, 3), 1);
  EXPECT_DOUBLE_EQ(index_overlap(Values{1, 2, 3, 4}, Values{1, 2, 8, 9}, 4), 0.5);
  EXPECT_DOUBLE_EQ(index_overlap(Values{-1, -1}, Values{-1, -1}, 2), 1);
  // By row: an index of another row is not right.
  EXPECT_DOUBLE_EQ(index_overlap(Values{1, 2, 3, 4}, Values{3, 4, 3, 4}, 2), 0.5);
  // Twice the same index counts once.
  EXPECT_DOUBLE_EQ(index_overlap(Values{1, 1}, Values{1, 2}, 2), 0.5);
}

Values values(const std::vector<int>& thousandths) {
  Values result;
  for (const int value : thousandths) result.push_back(value / 1000.0);
  return result;
}

RC_GTEST_PROP(Rules, AcceptWhatIsExactlyRight, (const std::vector<int>& thousandths)) {
  Observation seen;
  seen.op = Op::logits;
  seen.width = 1;
  seen.found = seen.expected = seen.stored = values(thousandths);
  for (const Rule& rule : accepted_rules()) RC_ASSERT(rule.accepts(seen, seen));
}

RC_GTEST_PROP(Rules, RefuseNaN, ()) {
  Observation correct;
  correct.op = Op::logits;
  correct.width = 1;
  correct.found = correct.expected = correct.stored =
      values(*rc::gen::container<std::vector<int>>(12, rc::gen::inRange(-9000, 9000)));
  Observation tested = correct;
  tested.found[static_cast<std::size_t>(*rc::gen::inRange(0, 12))] = nan;
  for (const Rule& rule : accepted_rules())
    if (!rule.of_selections) RC_ASSERT(!rule.accepts(tested, correct));
}

RC_GTEST_PROP(CalcDiff, IsSymmetricAndBetweenZeroAndTwo, (const std::vector<int>& thousandths)) {
  const Values x = values(thousandths);
  Values y = x;
  for (double& value : y) value = 3 - value;
  const double there = calc_diff(x, y), back = calc_diff(y, x);
  RC_ASSERT(std::abs(there - back) < 1e-12);
  RC_ASSERT(there > -1e-12 && there < 2 + 1e-12);
}

TEST(Rules, EachIsForNumbersOrForSelections) {
  std::set<std::string_view> names;
  int of_selections = 0;
  for (const Rule& rule : accepted_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.statement.empty());
    EXPECT_FALSE(rule.source.empty());
    of_selections += rule.of_selections ? 1 : 0;
    EXPECT_EQ(applies(rule, Op::topk), rule.of_selections);
    EXPECT_EQ(applies(rule, Op::logits), !rule.of_selections);
  }
  EXPECT_EQ(names.size(), 5u);
  EXPECT_EQ(of_selections, 1);
}

}  // namespace
}  // namespace indexpool::verify
