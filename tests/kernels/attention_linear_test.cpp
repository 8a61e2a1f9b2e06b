// The kernels of linear attention: within the reference's enclosures, the same bytes in any lane
// order and however sequences are cut and batched, traffic as declared.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/attention/attention.hpp"

#include "attention_bench.hpp"
#include "attention_judge.hpp"

namespace indexpool::kernels {
namespace {

reference::LinearAttention expected(const LinearAttentionInputs& in, bool chunked) {
  return chunked ? reference::linear_attention_chunked(in, linear_chunk_tokens)
                 : reference::linear_attention(in);
}
double worst(const LinearAttentionInputs& in, const LinearRun& run, bool chunked) {
  const auto bounds = expected(in, chunked);
  return std::max(worst_share(bounds.outputs, run.outputs.front()),
                  worst_share(bounds.state, run.states.front()));
}

RC_GTEST_PROP(LinearKernels, StayWithinTheBoundsInAnyLaneOrder, ()) {
  const bool chunked = *rc::gen::arbitrary<bool>();
  LinearDraw draw;
  draw.heads = *rc::gen::inRange(1, 3);
  draw.keys = *rc::gen::element(32, 64, 128);
  draw.values = *rc::gen::element(32, 64, 128);
  draw.storage = *rc::gen::element(DType::f32, DType::bf16, DType::f16);
  draw.decay = *rc::gen::element(0.0, 0.1, 20.0);
  const auto lengths = *rc::gen::container<std::vector<int>>(2, rc::gen::inRange(0, 20));
  std::vector<LinearAttentionInputs> sequences;
  for (const int length : lengths) {
    draw.tokens = length;
    draw.seed = *rc::gen::arbitrary<std::uint64_t>();
    sequences.push_back(random_linear(draw));
  }
  const LinearRun run = run_linear(sequences, chunked);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto bounds = expected(sequences[s], chunked);
    RC_ASSERT(worst_share(bounds.outputs, run.outputs[s]) <= 1);
    RC_ASSERT(worst_share(bounds.state, run.states[s]) <= 1);
  }
  sim::simt::Options random;
  random.order = sim::simt::LaneOrder::random;
  RC_ASSERT(run_linear(sequences, chunked, random) == run);
}

TEST(LinearKernels, EveryLaneOrderGivesTheSameBytes) {
  LinearDraw draw;
  draw.tokens = 35;
  draw.values = 64;
  const auto in = random_linear(draw);
  for (const bool chunked : {false, true}) {
    const LinearRun forward = run_linear({in}, chunked);
    for (const auto& order : lane_orders())
      EXPECT_TRUE(run_linear({in}, chunked, order) == forward) << chunked;
  }
}

class LinearKernelLengths : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Tokens, LinearKernelLengths, testing::Values(1, 2, 15, 16, 17, 63, 1000));

TEST_P(LinearKernelLengths, StepsAndChunksAgreeWithinTheirBounds) {
  LinearDraw draw;
  draw.tokens = GetParam();
  draw.heads = 1;
  const auto in = random_linear(draw);
  const double steps = worst(in, run_linear({in}, false), false);
  const double chunks = worst(in, run_linear({in}, true), true);
  EXPECT_LE(steps, 1);
  EXPECT_LE(chunks, 1);
  EXPECT_GT(steps, 1e-3) << "the bound says nothing";
  EXPECT_GT(chunks, 1e-4) << "the bound says nothing";
}

TEST(LinearKernels, AStateCarriedAcrossLaunchesGivesTheBytesOfOneLaunch) {
  LinearDraw draw;
  draw.tokens = 40;
  const auto whole = random_linear(draw);
  for (const bool chunked : {false, true}) {
    const LinearRun once = run_linear({whole}, chunked);
    // Chunks begin where a launch does: a cut between chunks leaves them as they are.
    for (const std::int64_t cut : {16, 32}) {
      const LinearRun first = run_linear({tokens_of(whole, 0, cut)}, chunked);
      auto rest = tokens_of(whole, cut, draw.tokens);
      std::copy(first.states[0].begin(), first.states[0].end(), rest.state.as<float>().begin());
      const LinearRun second = run_linear({rest}, chunked);
      auto outputs = first.outputs[0];
      outputs.insert(outputs.end(), second.outputs[0].begin(), second.outputs[0].end());
      EXPECT_TRUE(same_bytes(outputs, once.outputs[0])) << chunked;
      EXPECT_TRUE(same_bytes(second.states[0], once.states[0])) << chunked;
    }
  }
}

TEST(LinearKernels, ABatchGivesTheBytesOfEachSequenceAlone) {
  LinearDraw draw;
  std::vector<LinearAttentionInputs> sequences;
  for (const std::int64_t tokens : {3, 0, 18, 1}) {
    draw.tokens = tokens;
    ++draw.seed;
    sequences.push_back(random_linear(draw));
  }
  for (const bool chunked : {false, true}) {
    const LinearRun batch = run_linear(sequences, chunked);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const LinearRun alone = run_linear({sequences[s]}, chunked);
      EXPECT_TRUE(same_bytes(alone.outputs[0], batch.outputs[s]));
      EXPECT_TRUE(same_bytes(alone.states[0], batch.states[s]));
    }
    // No token: the state comes back as it was.
    const auto state = sequences[1].state.as<float>();
    EXPECT_TRUE(same_bytes(batch.states[1], {state.begin(), state.end()}));
  }
}

// What a kernel with the fault would see is what the right kernel sees on changed operands.
struct PlantedLinear {
  const char* name;
  void (*plant)(LinearAttentionInputs& in);
};
void shift_decay(LinearAttentionInputs& in) {  // as if the decay came after the update
  auto decay = in.log_decay.clone();
  const auto from = in.log_decay.as<float>();
  const auto to = decay.as<float>();
  const auto row = static_cast<std::size_t>(in.log_decay.size() / in.log_decay.dim(0));
  std::fill_n(to.begin(), row, 0.0f);
  std::copy(from.begin(), from.end() - static_cast<std::ptrdiff_t>(row),
            to.begin() + static_cast<std::ptrdiff_t>(row));
  in.log_decay = decay;
}
void forget_beta(LinearAttentionInputs& in) {
  in.beta = in.beta.clone();
  for (std::int64_t i = 0; i < in.beta.size(); ++i) in.beta.set(i, 1);
}
void forget_scale(LinearAttentionInputs& in) { in.scale = 1; }
void forget_state(LinearAttentionInputs& in) { in.state = Tensor(DType::f32, in.state.shape()); }
void swap_heads(LinearAttentionInputs& in) {
  in.beta = in.beta.clone();
  for (std::int64_t t = 0; t < in.beta.dim(0); ++t) {
    const double first = in.beta.at(2 * t);
    in.beta.set(2 * t, in.beta.at(2 * t + 1));
    in.beta.set(2 * t + 1, first);
  }
}

TEST(LinearKernels, PlantedErrorsAreCaught) {
  LinearDraw draw;
  draw.tokens = 20;
  const auto in = random_linear(draw);
  const PlantedLinear plants[] = {{"decay one token late", shift_decay},
                                  {"beta forgotten", forget_beta},
                                  {"scale forgotten", forget_scale},
                                  {"state forgotten", forget_state},
                                  {"heads swapped", swap_heads}};
  for (const bool chunked : {false, true}) {
    for (const PlantedLinear& planted : plants) {
      auto wrong = in;
      planted.plant(wrong);
      EXPECT_GT(worst(in, run_linear({wrong}, chunked), chunked), 10) << planted.name;
    }
    // A seam off by one: the second launch begins one token late.
    const LinearRun first = run_linear({tokens_of(in, 0, 16)}, chunked);
    auto rest = tokens_of(in, 16, 20);
    const auto late = tokens_of(in, 15, 19);
    std::copy(first.states[0].begin(), first.states[0].end(), rest.state.as<float>().begin());
    auto shifted = late;
    shifted.state = rest.state;
    EXPECT_LE(worst(rest, run_linear({rest}, chunked), chunked), 1);
    EXPECT_GT(worst(rest, run_linear({shifted}, chunked), chunked), 10);
  }
}

TEST(LinearKernels, OtherDimsAreRefusedWithAReason) {
  LinearStepArgs args;
  args.linear.key_dim = 48;
  const Kernel* step = find_kernel("simt", "linear_attention_step");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->unsupported(AttentionArgs(args)), "key_dim is 48; it must be 32, 64 or 128");
  args.linear.key_dim = 64;
  EXPECT_FALSE(step->unsupported(AttentionArgs(args)).has_value());
  EXPECT_TRUE(step->unsupported(PoolArgs{}).has_value());
}

TEST(LinearKernels, WorkFollowsFromTheShapesAlone) {
  LinearStepArgs args;
  args.linear.sequence_count = 4;
  args.linear.heads = 64;
  const Work work = find_kernel("simt", "linear_attention_step")->work(AttentionArgs(args));
  // 64 x 128 x 128 f32 a sequence, in and out.
  EXPECT_EQ(work.unique_write.value, 4 * (4194304 + 64 * 128 * 4));
  EXPECT_EQ(work.blocks, 4 * 64 * 4) << "32 of 128 value channels a block";
}

}  // namespace
}  // namespace indexpool::kernels
