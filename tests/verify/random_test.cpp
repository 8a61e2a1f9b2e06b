// No false alarms: correct kernels on random small problems over every mode, fill, shape and
// schedule.
#include "indexpool/verify/random_problem.hpp"

#include "no_alarm.hpp"

namespace indexpool::verify {
namespace {

constexpr int shards = 8;

class RandomProblems : public testing::TestWithParam<int> {};

TEST_P(RandomProblems, RaiseNoAlarm) {
  expect_no_alarm(random_problem, GetParam(), shards, INDEXPOOL_PROBLEMS_PER_SHARD);
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomProblems, testing::Range(0, shards));

}  // namespace
}  // namespace indexpool::verify
