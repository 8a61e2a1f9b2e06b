// Instructions that the attention kernels declare, against what must be among them: the shuffles
// and memory instructions that the executor counts, and the multiply-adds of the formulas.
#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::kernels {
namespace {

constexpr double lanes = 32;

Work work_of(const AttentionArgs& args) { return find_kernel("simt", args).work(args); }

// One of each kernel for `scale` times as many rows, tokens or sequences.
std::vector<AttentionArgs> launches(std::int64_t scale, std::int32_t dim) {
  SafeGateArgs gate;
  gate.rows = 256 * scale, gate.heads = 4, gate.key_dim = dim;
  LinearAttentionArgs linear;
  linear.sequence_count = 8 * scale, linear.heads = 4, linear.key_dim = linear.value_dim = dim;
  SparseAttentionArgs sparse;
  sparse.rows = 16 * scale, sparse.tokens = 5000, sparse.head_dim = sparse.value_dim = dim;
  GateFusionArgs fusion;
  fusion.rows = 256 * scale, fusion.heads = 4, fusion.value_dim = dim;
  DecompressArgs decompress;
  decompress.tokens = 256 * scale, decompress.heads = 4, decompress.head_dim = dim;
  CountAttendedArgs attended;
  attended.slots = 8192 * scale;
  AttentionFeedbackArgs feedback;
  feedback.slots = 8192 * scale, feedback.tokens = 2048 * scale;
  return {gate,
          LinearStepArgs{linear},
          LinearChunkArgs{linear},
          sparse,
          fusion,
          decompress,
          attended,
          feedback};
}
CompositeAttentionArgs composite(std::int64_t tokens, std::int32_t dim) {
  CompositeAttentionArgs args;
  args.tokens = tokens, args.heads = 4, args.head_dim = dim;
  return args;
}

// At least this many warp instructions: two operations of a lane at a time, shuffles, accesses of
// at most 16 bytes a lane.
double fewest(const Work& work) {
  const Traffic& t = work.traffic;
  const double bytes = static_cast<double>(t.global_load.value + t.global_store.value +
                                           t.shared_load.value + t.shared_store.value);
  return work.f32_flop.value / (2 * lanes) + static_cast<double>(t.shuffles) + bytes / (16 * lanes);
}

TEST(AttentionIssue, CoversTheArithmeticAndTheAccesses) {
  for (const std::int32_t dim : {32, 64, 128}) {
    auto all = launches(1, dim);
    all.push_back(composite(200, dim));
    for (const AttentionArgs& args : all) {
      const Work work = work_of(args);
      const Instructions& issue = work.instructions;
      EXPECT_GT(issue.issued, fewest(work)) << args.index() << " of " << dim;
      EXPECT_LT(issue.integer + issue.special, issue.issued) << args.index();
      EXPECT_GT(work.chain.instructions, 0) << args.index();
      EXPECT_LE(work.chain.instructions, issue.issued) << args.index();
      EXPECT_GT(work.chain.first_loads, 0) << args.index();
    }
  }
}

TEST(AttentionIssue, OfManyTokensIsMostlyMultiplyAdds) {
  // Two products of 128 channels per pair of tokens, in tiles: little else should count.
  const Work work = work_of(composite(64 * 1024, 128));
  EXPECT_LT(work.instructions.issued, 1.6 * work.f32_flop.value / (2 * lanes));
}

TEST(AttentionIssue, DoublesWithTheRows) {
  const auto once = launches(1, 128), twice = launches(2, 128);
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_NEAR(work_of(twice[i]).instructions.issued, 2 * work_of(once[i]).instructions.issued,
                1e-9 * work_of(twice[i]).instructions.issued)
        << i;
}

TEST(AttentionIssue, OfTwiceTheTokensCompositeAttentionTakesFourTimes) {
  const double once = work_of(composite(1 << 15, 128)).instructions.issued;
  EXPECT_NEAR(work_of(composite(1 << 16, 128)).instructions.issued / once, 4, 0.01);
}

}  // namespace
}  // namespace indexpool::kernels
