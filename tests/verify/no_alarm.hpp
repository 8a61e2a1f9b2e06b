// Correct kernels on random small problems: whatever is drawn, no verdict says otherwise.
// INDEXPOOL_SEED in the environment starts another stream.
#pragma once

#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// Problems shard, shard + shards, ... of the stream; stops after five alarms.
inline void expect_no_alarm(Problem (*draw)(std::uint64_t seed, std::int64_t number), int shard,
                            int shards, int problems) {
  const char* text = std::getenv("INDEXPOOL_SEED");
  const std::uint64_t seed = text == nullptr ? 20260101 : std::strtoull(text, nullptr, 10);
  std::cout << "seed " << seed << ", shard " << shard << "\n";
  int alarms = 0;
  for (int i = 0; i < problems && alarms < 5; ++i) {
    const std::int64_t number = static_cast<std::int64_t>(i) * shards + shard;
    const Problem problem = draw(seed, number);
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

}  // namespace indexpool::verify
