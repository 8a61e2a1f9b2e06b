// What pooling and quantisation lose.
#include "indexpool/reference/loss.hpp"

#include <gtest/gtest.h>

#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

Draw long_draw() {
  Draw draw;
  draw.lengths = {200, 3};
  draw.heads = 4;
  return draw;
}

TEST(Loss, IsNothingButTheStorageRoundingWithoutPoolsOrScales) {
  auto draw = long_draw();
  draw.kpool = 1;
  const auto loss = measure_loss(random_inputs(draw, numeric_mode("bf16")));
  EXPECT_EQ(loss.rows, 196);  // 4 tokens may be selected of 5 and more
  EXPECT_EQ(loss.quantiser_relative_error, 0);
  EXPECT_LT(loss.pooling_worst_relative_error, 1e-15);  // one token: its own key
  EXPECT_EQ(loss.pool_recall, 1);
  EXPECT_EQ(loss.token_recall, 1);
}

TEST(Loss, OfNarrowFormatsLiesWithinTheirUnitRoundoff) {
  const auto draw = long_draw();
  const auto bf16 = measure_loss(random_inputs(draw, numeric_mode("bf16")));
  EXPECT_GT(bf16.pooling_relative_error, 1e-4);
  EXPECT_LT(bf16.pooling_worst_relative_error, 0x1p-8 * 1.01);
  const auto fp8 = measure_loss(random_inputs(draw, numeric_mode("vllm_fp8")));
  EXPECT_GT(fp8.quantiser_relative_error, 0.01);
  EXPECT_LT(fp8.quantiser_worst_relative_error, 0x1p-4);
  const auto i8 = measure_loss(random_inputs(draw, numeric_mode("int8")));
  EXPECT_LT(i8.quantiser_relative_error, fp8.quantiser_relative_error);  // Gaussian vectors
  EXPECT_GT(fp8.pool_recall, 0.8);
  EXPECT_LT(fp8.pool_recall, 1);
  EXPECT_GE(fp8.value_recall, fp8.pool_recall);
}

TEST(Loss, OfTokensThatAgreeWithinTheirPoolIsNone) {
  auto in = random_inputs(long_draw(), numeric_mode("hf_f32"));
  const auto dim = in.config.index_head_dim;
  for (std::int64_t row = 0; row < 200; ++row) {
    for (std::int64_t c = 0; c < dim; ++c) {
      in.keys.set(row * dim + c, in.keys.at(row / 4 * 4 * dim + c));
    }
  }
  const auto loss = measure_loss(in);
  EXPECT_EQ(loss.pool_recall, 1);
  // The best tokens are those of the best pools, and of the tail, which is always taken.
  EXPECT_EQ(loss.token_recall, 1);
  const auto different = measure_loss(random_inputs(long_draw(), numeric_mode("hf_f32")));
  EXPECT_LT(different.token_recall, 0.9);
}

TEST(Loss, HasNoSelectionToJudgeInAShortContext) {
  auto draw = long_draw();
  draw.lengths = {16, 0};
  const auto loss = measure_loss(random_inputs(draw, numeric_mode("vllm_fp8")));
  EXPECT_EQ(loss.rows, 0);
  EXPECT_EQ(loss.pool_recall, 1);
}

}  // namespace
}  // namespace indexpool::reference
