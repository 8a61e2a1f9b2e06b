// Visibility, selection with its tie rule, expansion, and the certificate of a selection.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/golden.hpp"

namespace indexpool::reference {
namespace {

using Indices = std::vector<std::int64_t>;

TEST(VisiblePools, CountsPoolsWhoseLastTokenIsVisible) {
  const Indices expected = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4};
  for (std::int64_t t = 0; t < 16; ++t) {
    EXPECT_EQ(visible_pools(t, 4), expected[static_cast<std::size_t>(t)]) << t;
  }
  EXPECT_EQ(visible_pools(0, 1), 1);
  EXPECT_EQ(visible_pools(41'943'039, 4), 10'485'760);
}

TEST(Select, TakesTheLowerIndexAmongEqualScores) {
  const std::vector<double> scores = {0, 1, 0, 1, 0, -1};
  EXPECT_EQ(select(scores, 1), (Indices{1}));
  EXPECT_EQ(select(scores, 3), (Indices{0, 1, 3}));
  EXPECT_EQ(select(scores, 4), (Indices{0, 1, 2, 3}));
}

TEST(Select, NeverTakesNaN) {
  const std::vector<double> scores = {NAN, -HUGE_VAL, NAN, 3};
  EXPECT_EQ(select(scores, 4), (Indices{1, 3}));
}

TEST(Select, OfNothingOrNoneIsEmpty) {
  EXPECT_TRUE(select({}, 5).empty());
  const std::vector<double> scores = {1, 2};
  EXPECT_TRUE(select(scores, 0).empty());
}

// Few distinct values, so that ties are common.
std::vector<double> any_scores() {
  const auto levels = *rc::gen::element(1, 2, 5, 1000);
  const auto size = *rc::gen::inRange<std::size_t>(0, 40);
  std::vector<double> scores(size);
  for (double& s : scores) s = *rc::gen::inRange(0, levels);
  return scores;
}

RC_GTEST_PROP(Select, NothingLeftOutBeatsWhatWasTaken, ()) {
  const auto scores = any_scores();
  const auto k = *rc::gen::inRange<std::int64_t>(0, 45);
  const auto taken = select(scores, k);
  RC_ASSERT(taken.size() == std::min(scores.size(), static_cast<std::size_t>(k)));
  RC_ASSERT(std::ranges::is_sorted(taken));
  const std::set<std::int64_t> set(taken.begin(), taken.end());
  RC_ASSERT(set.size() == taken.size());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(scores.size()); ++i) {
    if (set.contains(i)) continue;
    for (const auto j : taken) {
      const double in = scores[static_cast<std::size_t>(j)];
      const double out = scores[static_cast<std::size_t>(i)];
      RC_ASSERT(in > out || (in == out && j < i));
    }
  }
}

IndexerConfig config_of(std::int64_t kpool, std::int64_t pools, bool tail) {
  IndexerConfig config;
  config.index_kpool = kpool;
  config.index_topk = kpool * pools;
  config.index_kpool_always_select_tail = tail;
  return config;
}

TEST(Expand, ListsPoolsThenTheTailThenUnused) {
  const Indices pools = {0, 2};
  EXPECT_EQ(expand(pools, 13, 100, config_of(4, 3, true)),
            (std::vector<std::int32_t>{100, 101, 102, 103, 108, 109, 110, 111, 112, 113, -1, -1, -1,
                                       -1, -1}));
  EXPECT_EQ(expand(pools, 13, 0, config_of(4, 2, false)),
            (std::vector<std::int32_t>{0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(Expand, HasNoTailWhenAPoolHasJustClosed) {
  EXPECT_EQ(expand(Indices{0}, 3, 0, config_of(4, 1, true)),
            (std::vector<std::int32_t>{0, 1, 2, 3, -1, -1, -1}));
}

TEST(Expand, OfAContextShorterThanAPoolIsTheTail) {
  EXPECT_EQ(expand({}, 1, 5, config_of(4, 1, true)),
            (std::vector<std::int32_t>{5, 6, -1, -1, -1, -1, -1}));
}

TEST(Expand, RefusesMoreThanARowHolds) {
  EXPECT_THROW(expand(Indices{0, 1}, 8, 0, config_of(4, 1, true)), ConfigError);
}

struct Row {
  std::int64_t position = 0, first_key = 0;
  IndexerConfig config;
  std::vector<double> scores;
};

Row any_row() {
  Row row;
  row.config = config_of(*rc::gen::element<std::int64_t>(1, 2, 4, 16),
                         *rc::gen::inRange<std::int64_t>(1, 6), *rc::gen::arbitrary<bool>());
  row.position = *rc::gen::inRange<std::int64_t>(0, 12 * row.config.index_kpool);
  row.first_key = *rc::gen::inRange<std::int64_t>(0, 100);
  const auto levels = *rc::gen::element(2, 1000);
  row.scores.resize(static_cast<std::size_t>(visible_pools(row.position, row.config.index_kpool)));
  for (double& s : row.scores) s = *rc::gen::inRange(0, levels);
  return row;
}

RC_GTEST_PROP(SelectionCertificate, AcceptsTheReferencesAnswerInAnyColumnOrder, ()) {
  const auto row = any_row();
  auto tokens =
      expand(select(row.scores, row.config.topk_pools()), row.position, row.first_key, row.config);
  std::ranges::reverse(tokens);
  RC_ASSERT(selection_fault(tokens, row.scores, row.scores, row.position, row.first_key,
                            row.config) == "");
}

RC_GTEST_PROP(SelectionCertificate, RejectsAnyWorsePool, ()) {
  auto row = any_row();
  const auto k = row.config.topk_pools();
  while (static_cast<std::int64_t>(row.scores.size()) <= k) {
    row.scores.push_back(*rc::gen::inRange(0, 3));
    row.position += row.config.index_kpool;
  }
  auto taken = select(row.scores, k);
  std::vector<std::int64_t> left_out;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(row.scores.size()); ++i) {
    if (!std::ranges::binary_search(taken, i)) left_out.push_back(i);
  }
  const auto fresh = *rc::gen::elementOf(left_out);
  const auto replaced = *rc::gen::inRange<std::size_t>(0, taken.size());
  const double lost = row.scores[static_cast<std::size_t>(taken[replaced])];
  const double gained = row.scores[static_cast<std::size_t>(fresh)];
  taken[replaced] = fresh;
  const auto tokens = expand(taken, row.position, row.first_key, row.config);
  const auto fault =
      selection_fault(tokens, row.scores, row.scores, row.position, row.first_key, row.config);
  RC_ASSERT(fault.empty() == (gained == lost));
}

RC_GTEST_PROP(SelectionCertificate, RejectsAnyBrokenToken, ()) {
  const auto row = any_row();
  auto tokens =
      expand(select(row.scores, row.config.topk_pools()), row.position, row.first_key, row.config);
  const auto used =
      static_cast<std::size_t>(std::ranges::count_if(tokens, [](auto t) { return t >= 0; }));
  RC_PRE(used > 0);
  const auto i = *rc::gen::inRange<std::size_t>(0, used);
  const std::int32_t wrong[] = {-1,
                                static_cast<std::int32_t>(row.first_key + row.position + 1),
                                static_cast<std::int32_t>(row.first_key - 1),
                                tokens[(i + 1) % used],
                                -2,
                                2143289344};
  tokens[i] = wrong[*rc::gen::inRange<std::size_t>(0, std::size(wrong))];
  const auto sound =
      expand(select(row.scores, row.config.topk_pools()), row.position, row.first_key, row.config);
  if (tokens == sound) return;
  RC_ASSERT(selection_fault(tokens, row.scores, row.scores, row.position, row.first_key,
                            row.config) != "");
}

TEST(SelectionCertificate, AcceptsEitherWhenTheIntervalsOverlap) {
  const auto config = config_of(4, 1, true);
  const std::vector<double> low = {1.0, 1.1}, high = {1.2, 1.3};
  EXPECT_EQ(selection_fault(expand(Indices{0}, 7, 0, config), low, high, 7, 0, config), "");
  EXPECT_EQ(selection_fault(expand(Indices{1}, 7, 0, config), low, high, 7, 0, config), "");
  EXPECT_FALSE(selection_decidable(low, high, 1));
  const std::vector<double> apart = {1.05, 1.3};
  EXPECT_NE(selection_fault(expand(Indices{0}, 7, 0, config), low, apart, 7, 0, config), "");
  EXPECT_TRUE(selection_decidable(low, apart, 1));
  EXPECT_TRUE(selection_decidable(low, high, 2));  // all are taken
}

}  // namespace
}  // namespace indexpool::reference
