// Attention over composite vectors: within the reference's enclosures, the same bytes in any lane
// order, traffic as declared; later tokens never seen.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"

#include "attention_bench.hpp"
#include "attention_judge.hpp"

namespace indexpool::kernels {
namespace {

// `spread`: of the scores, about.
CompositeAttentionInputs random_composite(std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                                          DType storage, double spread, std::uint64_t seed) {
  const double weight = std::sqrt(spread / static_cast<double>(dim));
  CompositeAttentionInputs in;
  in.composites = normal_tensor(storage, {tokens, heads, dim}, 1, seed);
  in.query_weight = normal_tensor(storage, {heads, dim, dim}, weight, seed + 1);
  in.key_weight = normal_tensor(storage, {heads, dim, dim}, weight, seed + 2);
  in.values = normal_tensor(storage, {tokens, heads, dim}, 1, seed + 3);
  return in;
}

RC_GTEST_PROP(CompositeKernels, StayWithinTheBoundInAnyLaneOrder, ()) {
  const auto in = random_composite(
      *rc::gen::inRange(0, 135), *rc::gen::inRange(1, 3), *rc::gen::element(32, 32, 64, 128),
      *rc::gen::element(DType::f32, DType::bf16, DType::f16), *rc::gen::element(0.1, 1.0, 10.0),
      *rc::gen::arbitrary<std::uint64_t>());
  const auto outputs = run_composite(in);
  RC_ASSERT(worst_share(reference::composite_attention(in), outputs) <= 1);
  const auto orders = lane_orders();
  const auto& order = orders[*rc::gen::inRange<std::size_t>(1, orders.size())];
  RC_ASSERT(same_bytes(run_composite(in, order), outputs));
}

TEST(CompositeKernels, TilesMayEndAnywhere) {
  constexpr DType storages[] = {DType::f32, DType::bf16, DType::f16};
  std::size_t turn = 0;
  for (const std::int64_t dim : {32, 64, 128}) {
    for (const std::int64_t tokens : {0, 1, 31, 32, 33, 63, 64, 65, 96, 97, 128, 129, 161}) {
      const auto in = random_composite(tokens, 1, dim, storages[++turn % 3], 1, 5);
      EXPECT_LE(worst_share(reference::composite_attention(in), run_composite(in)), 1)
          << tokens << " tokens of " << dim;
    }
  }
}

TEST(CompositeKernels, LaterTokensAreNotSeen) {
  auto in = random_composite(100, 2, 32, DType::bf16, 1, 5);
  const auto outputs = run_composite(in);
  for (const std::int64_t seen : {1, 32, 50, 64, 99}) {
    auto changed = in;
    changed.composites = in.composites.clone(), changed.values = in.values.clone();
    for (std::int64_t i = seen * 64; i < in.values.size(); ++i)
      changed.composites.set(i, 9), changed.values.set(i, -1e4);
    const auto others = run_composite(changed);
    const auto end = seen * 64;
    EXPECT_TRUE(same_bytes({others.begin(), others.begin() + end},
                           {outputs.begin(), outputs.begin() + end}))
        << seen;
  }
}

// With all scores 0 a token gets the mean of what it sees; of whole numbers that is exact.
CompositeAttentionInputs uniform_composite(std::int64_t tokens) {
  auto in = random_composite(tokens, 1, 32, DType::f32, 0, 1);
  for (std::int64_t i = 0; i < in.values.size(); ++i) in.values.set(i, double(i * i % 41));
  return in;
}

TEST(CompositeKernels, EqualScoresGiveTheMeanOfTheTokensSeen) {
  const auto in = uniform_composite(75);
  const auto outputs = run_composite(in);
  std::vector<double> sum(32);
  for (std::int64_t i = 0; i < in.values.size(); ++i) {
    double& channel = sum[static_cast<std::size_t>(i % 32)];
    channel += in.values.at(i);
    ASSERT_EQ(outputs[static_cast<std::size_t>(i)],
              static_cast<float>(channel) / static_cast<float>(i / 32 + 1));
  }
}

TEST(CompositeKernels, TheFirstTokenIsItsValue) {
  const auto in = random_composite(1, 2, 64, DType::f16, 1, 6);
  const auto outputs = run_composite(in);
  for (std::int64_t i = 0; i < in.values.size(); ++i)
    EXPECT_EQ(outputs[static_cast<std::size_t>(i)], in.values.at(i));
}

TEST(CompositeKernels, ScoresBeyondTheRangeOfTheExponentialAreRescaled) {
  // A score of about s^2 / sqrt(32) at token s, hundreds in the last tile.
  auto in = random_composite(100, 1, 32, DType::f32, 0, 7);
  for (std::int64_t h = 0; h < 32 * 32; ++h) {
    in.query_weight.set(h, h % 33 == 0 ? 1 : 0);
    in.key_weight.set(h, h % 33 == 0 ? 1 : 0);
  }
  for (std::int64_t i = 0; i < in.composites.size(); ++i)
    in.composites.set(i, i % 32 == 0 ? double(i / 32) : 0.0);
  const auto outputs = run_composite(in);
  EXPECT_LE(worst_share(reference::composite_attention(in), outputs), 1);
  for (const float x : outputs) ASSERT_TRUE(std::isfinite(x));
  EXPECT_NEAR(outputs[99 * 32], in.values.at(99 * 32), 1e-4);
}

TEST(CompositeKernels, PlantedErrorsAreCaught) {
  const auto in = random_composite(70, 2, 32, DType::bf16, 1, 8);
  const auto bounds = reference::composite_attention(in);
  EXPECT_GT(worst_share(bounds, run_composite(in)), 1e-4) << "the bound says nothing";
  auto wrong = in;
  std::swap(wrong.query_weight, wrong.key_weight);
  EXPECT_GT(worst_share(bounds, run_composite(wrong)), 10) << "W_q and W_k swapped";
  wrong = in;
  wrong.values = in.composites;
  EXPECT_GT(worst_share(bounds, run_composite(wrong)), 10) << "composites for values";
  wrong = in;
  wrong.key_weight = in.query_weight;
  EXPECT_GT(worst_share(bounds, run_composite(wrong)), 10) << "W_q twice";
  EXPECT_GT(worst_share(bounds, run_composite(in, *make_simt_target(), 1.0f)), 10)
      << "scale forgotten";
}

TEST(CompositeKernels, AMaskOffByOneIsCaught) {
  const auto in = uniform_composite(70);
  const auto bounds = reference::composite_attention(in);
  auto outputs = run_composite(in);
  ASSERT_LE(worst_share(bounds, outputs), 1);
  auto acausal = outputs;  // with equal scores a token that sees its successor gets its mean
  std::copy(outputs.begin() + 32, outputs.end(), acausal.begin());
  EXPECT_GT(worst_share(bounds, acausal), 10);
  auto blind = outputs;  // and one that does not see itself, its predecessor's
  std::copy(outputs.begin(), outputs.end() - 32, blind.begin() + 32);
  EXPECT_GT(worst_share(bounds, blind), 10);
}

std::string refusal(const AttentionArgs& args) {
  try {
    find_kernel("simt", args);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CompositeKernels, ArgumentsThatDoNotFitAreRefusedInWords) {
  CompositeAttentionArgs args;
  EXPECT_EQ(refusal(args), "");
  args.head_dim = 48;
  EXPECT_NE(refusal(args).find("head_dim is 48; it must be 32, 64 or 128"), std::string::npos);
  args = {};
  args.storage = DType::e4m3;
  EXPECT_NE(refusal(args).find("values are stored as e4m3"), std::string::npos);
  args = {};
  args.values = reinterpret_cast<const void*>(16);
  EXPECT_NE(refusal(args).find("the values start 16 bytes past"), std::string::npos);
  DecompressArgs first;
  first.tokens = -1;
  EXPECT_NE(refusal(first).find("-1 tokens"), std::string::npos);
  first = {};
  first.heads = 0;
  EXPECT_NE(refusal(first).find("0 heads"), std::string::npos);
}

TEST(CompositeKernels, TheWorkOfTenMillionTokensFitsItsCounters) {
  CompositeAttentionArgs args;
  args.heads = 64;
  args.tokens = 10'000'000;
  const Work work = find_kernel("simt", AttentionArgs(args)).work(AttentionArgs(args));
  // A block goes through two tiles for each 64 tokens up to its last one.
  const double blocks = 10e6 / 64, tiles = 2 * blocks * (blocks + 1) / 2;
  const double key_and_value = 32.0 * 128 * (4 + 2);
  EXPECT_NEAR(static_cast<double>(work.traffic.global_load.value), 64 * tiles * key_and_value,
              1e-3 * 64 * tiles * key_and_value);
  EXPECT_EQ(work.blocks, 64 * 156'250);
}

}  // namespace
}  // namespace indexpool::kernels
