// No false alarms: layers of attention on random small problems over every layer, mode, fill and
// shape.
#include "indexpool/verify/random_problem.hpp"

#include "../no_alarm.hpp"

namespace indexpool::verify {
namespace {

constexpr int shards = 4;

class RandomAttention : public testing::TestWithParam<int> {};

TEST_P(RandomAttention, RaiseNoAlarm) {
  expect_no_alarm(random_attention_problem, GetParam(), shards, INDEXPOOL_PROBLEMS_PER_SHARD);
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomAttention, testing::Range(0, shards));

}  // namespace
}  // namespace indexpool::verify
