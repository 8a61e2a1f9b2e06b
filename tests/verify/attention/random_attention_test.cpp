// No false alarms: layers of attention on random small problems over every layer, mode, fill and
// shape. INDEXPOOL_SEED in the environment starts another stream.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "indexpool/verify/random_problem.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

constexpr int shards = 4;

class RandomAttention : public testing::TestWithParam<int> {};

TEST_P(RandomAttention, RaiseNoAlarm) {
  const char* text = std::getenv("INDEXPOOL_SEED");
  const std::uint64_t seed = text == nullptr ? 20260101 : std::strtoull(text, nullptr, 10);
  std::cout << "seed " << seed << ", shard " << GetParam() << "\n";
  int alarms = 0;
  for (int i = 0; i < INDEXPOOL_PROBLEMS_PER_SHARD && alarms < 5; ++i) {
    const std::int64_t number = static_cast<std::int64_t>(i) * shards + GetParam();
    const Problem problem = random_attention_problem(seed, number);
    Options options;
    options.all_lane_orders = i % 8 == 0;
    for (const Record& record : verify_problem(problem, options)) {
      const Status status = record.verdict.status;
      const bool alarm =
          status == Status::failed || status == Status::error || status == Status::unsupported;
      alarms += alarm ? 1 : 0;
      EXPECT_FALSE(alarm) << "problem " << number << ", " << record.op << " by "
                          << record.implementation << ": " << record.verdict.reason << "\n  "
                          << record.repeat;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomAttention, testing::Range(0, shards));

}  // namespace
}  // namespace indexpool::verify
