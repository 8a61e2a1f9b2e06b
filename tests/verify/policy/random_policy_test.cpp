// No false alarms: published forms on random small problems over every policy, mode, fill and
// shape.
#include "indexpool/verify/random_problem.hpp"

#include "../no_alarm.hpp"

namespace indexpool::verify {
namespace {

constexpr int shards = 4;

class RandomPolicies : public testing::TestWithParam<int> {};

TEST_P(RandomPolicies, RaiseNoAlarm) {
  expect_no_alarm(random_policy_problem, GetParam(), shards, INDEXPOOL_PROBLEMS_PER_SHARD);
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomPolicies, testing::Range(0, shards));

}  // namespace
}  // namespace indexpool::verify
