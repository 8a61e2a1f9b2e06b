// block_max against a plain loop, exactly; log_f32 against binary64; who is refused, and why; what
// launches without the host's view declare.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/kernels/policy/logarithm.cuh"

#include "exp_error.hpp"
#include "policy_bench.hpp"

namespace indexpool::kernels {
namespace {

// NaN and both zeros now and then.
std::vector<float> scores_of(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> scores;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto kind = bits() % 8;
    scores.push_back(kind == 0   ? NAN
                     : kind == 1 ? -0.0f
                     : kind == 2 ? -INFINITY
                                 : -std::abs(normal(bits)) - 1);
  }
  return scores;
}

std::vector<float> run_block_max(BlockMaxArgs args, const std::vector<float>& scores,
                                 sim::simt::LaneOrder order) {
  sim::simt::Options options;
  options.order = order;
  const auto target = make_simt_target(options);
  const std::int64_t count = args.rows * ((args.tokens + args.block - 1) / args.block);
  args.scores = upload_values(*target, "scores", scores.data(), std::ssize(scores));
  args.maxima = reinterpret_cast<float*>(target->allocate("maxima", count * 4, unwritten));
  launch_checked(OpArgs(PolicyArgs(args)), *target);
  return download_values(*target, args.maxima, count);
}

std::uint32_t bits_of_float(float value) { return std::bit_cast<std::uint32_t>(value); }

std::vector<float> host_block_max(const BlockMaxArgs& args, const std::vector<float>& scores) {
  std::vector<float> maxima;
  for (std::int64_t row = 0; row < args.rows; ++row)
    for (std::int64_t first = 0; first < args.tokens; first += args.block) {
      float largest = -INFINITY;
      for (std::int64_t t = first; t < std::min(first + args.block, args.tokens); ++t)
        largest = std::fmax(largest, scores[static_cast<std::size_t>(row * args.stride + t)]);
      maxima.push_back(largest);
    }
  return maxima;
}

RC_GTEST_PROP(BlockMax, IsTheLargestNumberOfEachBlock, (std::uint64_t seed)) {
  BlockMaxArgs args;
  args.block = *rc::gen::element(4, 12, 16, 64, 100, 128, 256, 384);
  args.rows = *rc::gen::element<std::int64_t>(0, 1, 2, 3, 7);
  args.tokens = *rc::gen::weightedOneOf<std::int64_t>(
      {{3, rc::gen::inRange<std::int64_t>(0, 3000)},
       {1, rc::gen::element<std::int64_t>(1, 127, 128, 129, 1023, 1024, 1025)}});
  args.stride = (args.tokens + 3) / 4 * 4 + 4 * *rc::gen::inRange<std::int64_t>(0, 3);
  const auto scores = scores_of(args.rows * args.stride, seed);
  const auto found = run_block_max(args, scores, sim::simt::LaneOrder::forward);
  RC_ASSERT(found == host_block_max(args, scores));  // -0 equals +0 here
  const auto random = run_block_max(args, scores, sim::simt::LaneOrder::random);
  RC_ASSERT(std::ranges::equal(found, random, {}, bits_of_float, bits_of_float));
}

TEST(BlockMax, NaNNeverWins) {
  BlockMaxArgs args;
  args.rows = 1, args.tokens = 300, args.stride = 300;
  std::vector<float> scores(300, NAN);
  scores[200] = -7;
  EXPECT_EQ(run_block_max(args, scores, sim::simt::LaneOrder::forward),
            (std::vector<float>{-INFINITY, -7, -INFINITY}));
}

// Two octaves whole, on both sides of 1; every 997th float of the others.
TEST(Log, StaysWithinOneUlp) {
  const auto error = [](std::uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    const double truth = std::log(static_cast<double>(x));
    if (truth == 0) return simt::log_f32(x) == 0 ? 0.0 : 1e9;
    return std::abs(static_cast<double>(simt::log_f32(x)) - truth) / spacing(truth);
  };
  double worst = 0;
  for (std::uint32_t bits = 0x3f000000u; bits < 0x40000000u; ++bits)
    worst = std::max(worst, error(bits));
  for (std::uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 997)
    worst = std::max(worst, error(bits));
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.4);  // an implementation in f32 does round
}

std::string refusal(const char* kernel, const PolicyArgs& args) {
  return find_kernel("simt", kernel)->unsupported(OpArgs(args)).value_or("");
}

TEST(PolicyKernels, RefuseInWords) {
  WeightedPoolArgs pool;
  pool.mode = pooling_mode("bf16");
  EXPECT_EQ(refusal("weighted_pool", pool), "");
  pool.grouped.head_dim = 96;
  EXPECT_EQ(refusal("weighted_pool", pool),
            "head_dim is 96; it must be a power of two from 32 to 2048");
  pool.grouped.head_dim = 4096;
  EXPECT_NE(refusal("weighted_pool", pool), "");
  pool.grouped.head_dim = 64;
  pool.grouped.index_kpool = 17;
  EXPECT_EQ(refusal("weighted_pool", pool), "index_kpool is 17; groups have 1 to 16 vectors");
  pool.grouped.index_kpool = 16;
  pool.divide = pool.per_channel = true;
  EXPECT_NE(refusal("weighted_pool", pool).find("normalised"), std::string::npos);
  pool.divide = false;
  pool.mode = numeric_mode("vllm_fp8");
  EXPECT_NE(refusal("weighted_pool", pool).find("Hadamard"), std::string::npos);
  pool.mode = pooling_mode("f32");
  EXPECT_NE(refusal("weighted_pool", pool).find("come as bf16"), std::string::npos);
  pool.mode = pooling_mode("int8");
  pool.mode.scale = ScaleRule::power_of_two;
  EXPECT_NE(refusal("weighted_pool", pool).find("i8 with a scale by amax"), std::string::npos);

  HiddenGatesArgs gates;
  gates.hidden = 40;
  EXPECT_EQ(refusal("hidden_gates", gates),
            "the hidden state has 40 channels; it must be a multiple of 16");
  gates.hidden = 48, gates.heads = 17;
  EXPECT_EQ(refusal("hidden_gates", gates), "17 heads; a gate has 1 to 16");
  AdditiveWeightsArgs additive;
  additive.sigma = 0;
  EXPECT_NE(refusal("additive_weights", additive).find("above 0"), std::string::npos);
  BlockMaxArgs maxima;
  maxima.block = 200;
  EXPECT_NE(refusal("block_max", maxima), "");
  EXPECT_EQ(refusal("role_weights", maxima), "it makes weights of roles");
}

TEST(PolicyKernels, RowsThatStartInsideASectorAreRefused) {
  alignas(32) std::byte memory[64]{};
  WeightedPoolArgs pool;
  pool.mode = pooling_mode("bf16");
  pool.grouped.vectors = memory + 16;
  EXPECT_EQ(refusal("weighted_pool", pool),
            "the vectors start 16 bytes past a multiple of 32; align them");
}

// Every exchange, matrix instruction and 512 bytes of traffic takes an instruction of its own.
TEST(PolicyKernels, DeclareMoreInstructionsThanTheyMustIssue) {
  GroupedVectors grouped;
  grouped.group_count = 1000;
  AdditiveWeightsArgs additive;
  additive.grouped = grouped;
  TfidfWeightsArgs tfidf;
  tfidf.grouped = grouped;
  GatedWeightsArgs gated;
  gated.grouped = grouped, gated.hidden = 64;
  ChannelWeightsArgs channels;
  channels.grouped = grouped;
  HiddenGatesArgs gates;
  gates.tokens = 1000, gates.hidden = 4096, gates.heads = 8;
  WeightedPoolArgs pool;
  pool.grouped = grouped, pool.mode = pooling_mode("int8");
  RoleWeightsArgs roles;
  roles.sets = 1000;
  BlockMaxArgs maxima;
  maxima.rows = 4, maxima.tokens = maxima.stride = 100'000;
  for (const PolicyArgs& args :
       std::vector<PolicyArgs>{additive, tfidf, gated, channels, gates, pool, roles, maxima}) {
    const Kernel& kernel = find_kernel("simt", OpArgs(args));
    const Work work = kernel.work(OpArgs(args));
    const Traffic& traffic = work.traffic;
    const std::int64_t moved = (traffic.global_load.value + traffic.global_store.value) / 512;
    const auto least = static_cast<double>(traffic.shuffles + traffic.matrix_ops + moved);
    EXPECT_GT(work.instructions.issued, least) << kernel.name;
    EXPECT_LT(work.instructions.integer + work.instructions.special, work.instructions.issued);
    const double warps = static_cast<double>(work.blocks * work.threads_per_block) / 32;
    EXPECT_LE(work.instructions.issued, warps * work.chain.instructions * 1.0001) << kernel.name;
    EXPECT_GT(work.instructions.issued, 0.8 * warps * work.chain.instructions) << kernel.name;
    EXPECT_GE(work.chain.first_loads, 1) << kernel.name;
  }
}

// Consecutive rows and a row of weights each: what is assumed without the host's view.
TEST(PolicyKernels, DeclareTheSameWithoutTheHostsView) {
  for (const std::int64_t count : {1, 7, 40, 333}) {
    for (const int m : {1, 3, 4}) {
      WeightedPoolArgs pool;
      pool.mode = pooling_mode("int8");
      pool.grouped.head_dim = 64;
      pool.grouped.index_kpool = m;
      pool.grouped.group_count = count;
      pool.divide = true;
      std::vector<VectorGroup> groups;
      for (std::int64_t g = 0; g < count; ++g)
        groups.push_back({g * m, static_cast<std::int32_t>(g), 0});
      for (int i = 0; i < m; ++i) pool.grouped.offsets[i] = i;
      const Kernel* kernel = find_kernel("simt", "weighted_pool");
      const Work assumed = kernel->work(OpArgs(PolicyArgs(pool)));
      pool.grouped.host_groups = groups.data();
      const Work known = kernel->work(OpArgs(PolicyArgs(pool)));
      EXPECT_TRUE(assumed.traffic == known.traffic) << count << " groups of " << m;
      EXPECT_EQ(assumed.unique_read.value, known.unique_read.value);
    }
  }
}

TEST(PolicyKernels, MoveEachByteOnce) {
  WeightedPoolArgs pool;
  pool.mode = pooling_mode("fp8");
  pool.grouped.group_count = 2'500'000;  // of 10M tokens
  const Work work = find_kernel("simt", "weighted_pool")->work(OpArgs(PolicyArgs(pool)));
  EXPECT_EQ(work.unique_read.value, 2'500'000LL * (4 * 256 + 16 + 16));
  EXPECT_EQ(work.unique_write.value, 2'500'000LL * (128 + 4));
  EXPECT_EQ(work.traffic.global_load.value, work.unique_read.value);
  EXPECT_EQ(work.blocks, 312'500);
}

}  // namespace
}  // namespace indexpool::kernels
