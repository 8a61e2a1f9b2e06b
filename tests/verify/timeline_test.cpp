#include "indexpool/verify/timeline.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/random_problem.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

Timeline timeline_of(const Problem& problem, const Case& c) {
  return plan_timeline(c.inputs, problem.schedule, c.prefill, problem.seed);
}

RC_GTEST_PROP(Timeline, KeepsEveryTokenOnceInOrder, (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  const Case c = make_case(problem);
  const Timeline timeline = timeline_of(problem, c);
  std::vector<std::int64_t> next(problem.lengths.size(), 0);
  for (const Round& round : timeline.rounds) {
    for (const auto* parts : {&round.prefill, &round.decode}) {
      for (const Part& part : *parts) {
        const auto s = static_cast<std::size_t>(part.sequence);
        RC_ASSERT(part.start == next[s]);
        RC_ASSERT(part.kept >= 1);
        RC_ASSERT(part.kept <= part.offered);
        for (std::int64_t i = 0; i < part.offered; ++i) {
          const std::int64_t expected =
              i < part.kept ? c.inputs.sequences[s].first_row + part.start + i : rejected_draft;
          RC_ASSERT(timeline.source[static_cast<std::size_t>(part.first_row + i)] == expected);
        }
        next[s] += part.kept;
        RC_ASSERT(timeline.positions[s] >= part.start + part.offered);
      }
    }
  }
  for (std::size_t s = 0; s < next.size(); ++s) RC_ASSERT(next[s] == problem.lengths[s]);
}

RC_GTEST_PROP(Timeline, ChunksAndDraftsKeepToTheSchedule,
              (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  const Timeline timeline = timeline_of(problem, make_case(problem));
  for (const Round& round : timeline.rounds) {
    for (const Part& part : round.prefill) {
      RC_ASSERT(part.offered == part.kept);
      RC_ASSERT(problem.schedule.prefill_chunk == 0 ||
                part.offered <= problem.schedule.prefill_chunk);
    }
    for (const Part& part : round.decode) RC_ASSERT(part.offered == 1 + problem.schedule.drafts);
  }
}

TEST(Timeline, PartsAreSeparatedByRowsNothingMayRead) {
  Problem problem;
  problem.indexer = {1, 32, 16, 4, true};
  problem.lengths = {8};
  problem.schedule = {6, 3, 2};
  const Case c = make_case(problem);
  const Timeline timeline = timeline_of(problem, c);
  const Tensor staged = stage_rows(c.inputs.keys, timeline, 1, 2);
  for (std::int64_t row = 0; row < staged.dim(0); ++row) {
    const std::int64_t source = timeline.source[static_cast<std::size_t>(row)];
    EXPECT_EQ(std::isnan(staged.at(row * 32)), source == never_read) << row;
    if (source >= 0) {
      EXPECT_EQ(staged.at(row * 32 + 5), c.inputs.keys.at(source * 32 + 5));
    }
  }
  EXPECT_EQ(timeline.rounds.at(1).prefill.at(0).first_row, 3 + 3 + 3);  // gap, chunk, gap
}

TEST(Timeline, GoldenPrefillCountsPaddedPositions) {
  IndexerInputs inputs;
  inputs.config = {1, 32, 16, 4, true};
  inputs.sequences = {{5, 10, 0}, {0, 4, 10}};
  const Timeline timeline = plan_timeline(inputs, {}, 8, 1);
  ASSERT_EQ(timeline.rounds.at(0).prefill.size(), 2u);
  EXPECT_EQ(timeline.rounds.at(0).prefill.at(0).offered, 3);  // positions 5, 6, 7
  EXPECT_EQ(timeline.rounds.at(0).prefill.at(1).offered, 4);
  EXPECT_TRUE(timeline.decodes);
}

}  // namespace
}  // namespace indexpool::verify
