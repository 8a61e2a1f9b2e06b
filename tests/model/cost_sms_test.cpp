// What a launch takes of the SMs: pipes, waves of blocks, steps that wait for each other.
#include <cmath>

#include <gtest/gtest.h>

#include "indexpool/model/cost.hpp"

#include "expect_error.hpp"
#include "round_device.hpp"

namespace indexpool {
namespace {

TEST(Terms, ShufflesShareTheCrossbarWithSharedMemory) {
  Work work;
  work.traffic.shared_wavefronts = 1000;
  work.traffic.shuffles = 500;
  EXPECT_SAME(shared_term(work, round_device()).time.value, 1.5 * 128e3 / 1e12);
}

TEST(Terms, IssueIsFourWarpInstructionsAClockOfTheBusySms) {
  Work work;
  work.instructions = {4e6, 1e6, 1e5};
  EXPECT_SAME(issue_term(work, round_device()).time.value, 1e-4);  // 10 SMs x 4 x 1 GHz
  EXPECT_SAME(integer_term(work, round_device()).time.value, 5e-5);
  EXPECT_SAME(special_term(work, round_device()).time.value, 2e-5);
  work.blocks = 5;
  EXPECT_SAME(issue_term(work, round_device()).time.value, 2e-4);
  work.blocks = 15;
  work.idle_blocks = 10;  // the same five
  EXPECT_SAME(issue_term(work, round_device()).time.value, 2e-4);
}

TEST(Terms, LatencyIsTheChainOfABlockOnceAWave) {
  Work work;
  work.blocks = 20;
  work.blocks_per_sm = 2;
  work.chain = {.first_loads = 1,
                .loads = 2,
                .shared = 1,
                .atomics = 1,
                .shuffles = 2,
                .barriers = 1,
                .matrix = 10,
                .arithmetic = 100,
                .instructions = 50};
  work.matrix_dtype = "bf16";
  const double chain = 8e-7 + 4e-7 + 3e-8 + 5e-8 + 5e-8 + 4e-8 + 3e-7 + 4e-7 + 50 * 2e-9;
  EXPECT_SAME(latency_term(work, round_device(), {}).time.value, chain);
  work.blocks = 21;
  EXPECT_SAME(latency_term(work, round_device(), {}).time.value, 2 * chain);
  const CostTerm warm = latency_term(work, round_device(), {.warm_l2 = true});  // nothing to miss
  EXPECT_SAME(warm.time.value, 2 * (chain - 6e-7));
  expect_parts(warm.formula, {"2 waves", "1 first loads", "10 mma"});
}

TEST(Terms, TheFirstWavesLoadsAreNotOverlapped) {
  Work work;
  work.unique_read = Bytes(8'000'000);
  work.blocks = 1000;
  work.blocks_per_sm = 2;
  work.in_flight_per_block = Bytes(50'000);  // 20 resident blocks: 1 MB, Little's 1 TB/s
  EXPECT_EQ(fill_term(work, round_device(), {}).time.value, 0);  // nothing waits for it
  work.instructions.issued = 1e9;
  const double meeting = std::pow(2, 1.0 / 3);
  EXPECT_SAME(fill_term(work, round_device(), {}).time.value, 1e6 / 1e12 * meeting);
  work.unique_read = Bytes(500'000);
  EXPECT_SAME(fill_term(work, round_device(), {}).time.value, 5e5 / 1e12 * meeting);
}

TEST(Predict, AFullWaveRunsAtTheSmsRateAndTheRestAtItsLatency) {
  Work work;
  work.blocks = 21;  // a wave of two blocks on each of 10 SMs, and one more
  work.blocks_per_sm = 2;
  work.chain.arithmetic = 1000;              // 4 us
  work.instructions.issued = 21 * 16'000.0;  // 4 us of an SM each
  const double full = 8e-6 * std::pow(1 + std::pow(0.5, 2.75), 1 / 2.75);
  const double rest = 4e-6 * std::pow(2, 1 / 2.75);
  EXPECT_SAME(predict(work, round_device()).time.value, 2e-6 + full + rest);
}

}  // namespace
}  // namespace indexpool
