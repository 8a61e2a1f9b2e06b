// Fits and scores on synthetic tables: what made the rows is known, so what comes back can be
// judged.
#include "indexpool/model/latency/score.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/latency/held_out.hpp"

#include "expect_error.hpp"

namespace indexpool {
namespace {

// Constants near what public tables gave.
const std::vector<double> topk_truth = {8e-7, 2e-6, 8e-10, 9000,  4e-10,
                                        5e-7, 1.4,  6e-6,  1e-10, 1e15};
constexpr double noise = 0.03;

TimedRow topk_row(const DeviceSpec& device, std::int64_t sequences, std::int64_t context,
                  double factor) {
  CacheShape shape;
  shape.sequences = sequences;
  shape.rows_per_sequence = 1;
  shape.context = context;
  shape.tokens_per_entry = 4;
  shape.topk = 512;
  TimedRow row{"row_topk", "synthetic", shape, {}, 1, shape_text(shape), "decode"};
  row.time = Seconds(kernel_form("row_topk").time(shape, device, topk_truth).time * factor);
  return row;
}

// Log-normal noise by Box and Muller, so that every library draws the same.
TimingTable synthetic(std::uint64_t seed, double spread = noise) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const DeviceSpec device = load_device("h200-sxm");
  TimingTable table;
  table.file = "synthetic.csv";
  table.adapter = "generic";
  for (std::int64_t sequences = 1; sequences <= 4096; sequences *= 2) {
    for (std::int64_t context = 1024; context <= (1 << 20); context = context * 5 / 4) {
      const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185 * uniform());
      table.rows.push_back(topk_row(device, sequences, context, std::exp(spread * normal)));
    }
  }
  return table;
}

const ErrorSummary& all_of(const Score& score) { return score.summaries.back(); }

TEST(Scores, AFitOnNoisyRowsOfItsOwnFormIsAsGoodAsTheNoise) {
  const DeviceSpec device = load_device("h200-sxm");
  const Score score = score_table(synthetic(7), device, {});
  const ErrorSummary& all = all_of(score);
  EXPECT_GT(all.held_out, 60);
  EXPECT_LT(all.mean, 1.25 * noise * std::sqrt(2 / 3.14159265));  // mean of |normal|
  EXPECT_GE(all.coverage, 0.85);
  EXPECT_LE(all.coverage, 0.98);  // an interval that says something
  EXPECT_LT(std::abs(all.bias), 0.01);
}

TEST(Scores, AFitFindsTheConstantsThatMadeTheRows) {
  const Score score = score_table(synthetic(7, 1e-4), load_device("h200-sxm"), {});
  const std::vector<FittedConstant>& found = score.constants.implementations[0].constants;
  for (const std::size_t which : {1u, 2u, 3u, 4u, 5u, 6u}) {
    EXPECT_NEAR(found[which].value / topk_truth[which], 1, 0.1)
        << kernel_form("row_topk").constants[which].name;
  }
  EXPECT_GT(found[9].value, 1e14);  // no path of long rows where there was none
}

TEST(Scores, TheIntervalsOfConstantsContainTheTruth) {
  const Score score = score_table(synthetic(11), load_device("h200-sxm"), {});
  const std::vector<FittedConstant>& found = score.constants.implementations[0].constants;
  int inside = 0, determined = 0;
  for (std::size_t i = 1; i < 7; ++i) {
    determined += found[i].determined ? 1 : 0;
    inside += found[i].low * 0.98 <= topk_truth[i] && topk_truth[i] <= found[i].high * 1.02;
  }
  EXPECT_GE(determined, 5);
  EXPECT_GE(inside, 4);  // of six 90 % intervals
}

// The tester: rows of another truth than the constants given are told to be missed.
TEST(Scores, ConstantsOfAnotherKernelAreFoundOut) {
  const DeviceSpec device = load_device("h200-sxm");
  ScoreOptions options;
  options.constants = score_table(synthetic(7), device, {}).constants;
  TimingTable slower = synthetic(8);
  for (TimedRow& row : slower.rows) row.time = row.time * 1.5;
  const Score score = score_table(std::move(slower), device, options);
  EXPECT_NEAR(all_of(score).mean, 1.0 / 3, 0.03);
  EXPECT_LT(all_of(score).coverage, 0.05);
}

TEST(Scores, AFitNeverSeesWhatIsHeldOut) {
  const DeviceSpec device = load_device("h200-sxm");
  TimingTable spoilt = synthetic(7);
  for (TimedRow& row : spoilt.rows) {
    if (held_out(row.family, 1, 0.3)) row.time = row.time * 100;
  }
  EXPECT_EQ(to_json(score_table(std::move(spoilt), device, {}).constants),
            to_json(score_table(synthetic(7), device, {}).constants));
}

TEST(Scores, TheSameSeedGivesTheSameBytes) {
  const DeviceSpec device = load_device("h200-sxm");
  EXPECT_EQ(to_json(score_table(synthetic(7), device, {}).constants),
            to_json(score_table(synthetic(7), device, {}).constants));
}

TEST(Scores, ConstantsOfOneDeviceHoldOutEveryRowOfAnother) {
  ScoreOptions options;
  options.constants = score_table(synthetic(7), load_device("h200-sxm"), {}).constants;
  const Score moved = score_table(synthetic(7), load_device("h100-sxm"), options);
  EXPECT_EQ(all_of(moved).fitted, 0);
  EXPECT_EQ(all_of(moved).held_out, static_cast<std::int64_t>(moved.rows.size()));
  EXPECT_FALSE(moved.fitted_here);
}

TEST(Scores, GroupsAddUpToAll) {
  const Score score = score_table(synthetic(7), load_device("h200-sxm"), {});
  std::int64_t by_regime = 0;
  for (const ErrorSummary& each : score.summaries) {
    if (each.kernel == "all" && each.regime != "all") by_regime += each.held_out;
  }
  EXPECT_EQ(by_regime, all_of(score).held_out);
}

TEST(Scores, TooFewRowsAndUnknownKernelsAreRefused) {
  const DeviceSpec device = load_device("h200-sxm");
  TimingTable few = synthetic(7);
  few.rows.resize(5);
  expect_parts(config_error_of([&] { score_table(few, device, {}); }),
               {"synthetic.csv", "rows of \"synthetic\"", "at least 6"});
  ScoreOptions options;
  options.constants = load_implementations("aiconfigurator-topk.h200-sxm");
  expect_parts(config_error_of([&] { score_table(synthetic(7), device, options); }),
               {"synthetic.csv:1", "no constants for the kernel \"synthetic\""});
}

RC_GTEST_PROP(HeldOut, DependsOnNothingButFamilySeedAndShare, ()) {
  const std::string family = *rc::gen::arbitrary<std::string>();
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const double share = *rc::gen::inRange(0, 1001) / 1000.0;
  RC_ASSERT(held_out(family, seed, share) == held_out(family, seed, share));
  // A larger share holds out what a smaller one did.
  if (held_out(family, seed, share)) RC_ASSERT(held_out(family, seed, 1));
  RC_ASSERT(!held_out(family, seed, 0));
}

TEST(HeldOut, TakesItsShareAndAnotherSeedTakesOthers) {
  int first = 0, both = 0;
  constexpr int families = 20000;
  for (int i = 0; i < families; ++i) {
    const std::string family = fmt::format("m={},n=4096,k={}", i % 100, i);
    first += held_out(family, 1, 0.3) ? 1 : 0;
    both += held_out(family, 1, 0.3) && held_out(family, 2, 0.3) ? 1 : 0;
  }
  EXPECT_NEAR(first / double{families}, 0.3, 0.015);   // four standard deviations
  EXPECT_NEAR(both / double{families}, 0.09, 0.0085);  // independent of each other
}

// Published constants rest on this split: it may not move.
TEST(HeldOut, StaysWhereItWas) {
  std::string split;
  for (int i = 0; i < 40; ++i) split += held_out(fmt::format("m={}", i), 1, 0.3) ? 'h' : '.';
  EXPECT_EQ(split, "..h...h......h.....h.h.hhhh..h....h.....");
}

}  // namespace
}  // namespace indexpool
