// Sparse attention over a selection and attention over composite vectors: binary32 implementations
// stay within the enclosures, wrong ones do not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"

#include "random_attention.hpp"

namespace indexpool::reference {
namespace {

RC_GTEST_PROP(SparseAttention, BinaryThirtyTwoStaysWithinTheBound, ()) {
  SparseDraw draw;
  draw.rows = *rc::gen::inRange(1, 4);
  draw.key_heads = *rc::gen::inRange(1, 3);
  draw.heads = draw.key_heads * *rc::gen::inRange(1, 3);
  draw.tokens = *rc::gen::inRange(1, 90);
  draw.width = *rc::gen::inRange(1, 100);
  draw.dim = *rc::gen::element(1, 8, 64);
  draw.query_scale = *rc::gen::element(0.0, 1.0, 30.0, 1000.0);
  draw.storage = *rc::gen::element(DType::f32, DType::bf16, DType::f16);
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto in = random_sparse(draw);
  const auto expected = sparse_attention(in);
  RC_ASSERT(worst_of(expected, f32_sparse(in, false)) <= 1);
  RC_ASSERT(worst_of(expected, f32_sparse(in, true)) <= 1);
}

TEST(SparseAttention, BoundIsNoMoreThanAThousandTimesTheError) {
  const auto in = random_sparse({});
  EXPECT_GT(worst_of(sparse_attention(in), f32_sparse(in, true)), 1e-3);
}

TEST(SparseAttention, PlantedErrorsAreCaught) {
  const auto in = random_sparse({});
  for (const auto fault :
       {SoftmaxFault::no_scale, SoftmaxFault::unused_is_token_0, SoftmaxFault::last_dropped})
    EXPECT_GT(worst_of(sparse_attention(in), f32_sparse(in, true, fault)), 10)
        << static_cast<int>(fault);
  SparseDraw large;
  large.query_scale = 200;  // scores beyond the range of the exponential
  const auto far = random_sparse(large);
  EXPECT_LE(worst_of(sparse_attention(far), f32_sparse(far, false)), 1);
  EXPECT_GT(worst_of(sparse_attention(far), f32_sparse(far, false, SoftmaxFault::no_maximum)), 10);
}

TEST(SparseAttention, OneSelectedTokenIsItsValueAndNoneIsZero) {
  SparseDraw draw;
  draw.rows = 2;
  draw.width = 1;
  const auto in = random_sparse(draw);
  const auto token = in.selection.as<std::int32_t>()[0];
  const auto answer = sparse_attention(in);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t c = 0; c < draw.values; ++c) {
      EXPECT_EQ(answer.value[static_cast<std::size_t>(h * draw.values + c)],
                in.values.at(token * draw.values + c));
      const auto none = static_cast<std::size_t>((2 + h) * draw.values + c);
      EXPECT_EQ(answer.low[none], 0);
      EXPECT_EQ(answer.high[none], 0);
    }
  }
}

TEST(SparseAttention, EqualValuesComeOutWhateverTheScores) {
  auto in = random_sparse({});
  for (std::int64_t i = 0; i < in.values.size(); ++i) in.values.set(i, 3);
  const auto answer = sparse_attention(in);
  EXPECT_NEAR(answer.value[0], 3, 1e-14);
  // The deviations vanish: only sums and the quotient round, (2 width + ...) 2^-24 * 3.
  EXPECT_LT(answer.high[0] - answer.low[0], 3 * 2 * 60 * 0x1p-24);
}

TEST(SparseAttention, DuplicatesAndTokensOutOfRangeAreRefused) {
  auto in = random_sparse({});
  auto selection = in.selection.as<std::int32_t>();
  const auto kept = selection[1];
  selection[0] = selection[1] = 7;
  EXPECT_THROW(sparse_attention(in), ConfigError);
  selection[0] = 50;
  selection[1] = kept;
  EXPECT_THROW(sparse_attention(in), ConfigError);
  selection[0] = -2;
  EXPECT_THROW(sparse_attention(in), ConfigError);
}

TEST(SparseAttention, Binary128AgreesWithBinary64) {
  SparseDraw draw;
  draw.dim = 4;
  draw.values = 2;
  const auto in = random_sparse(draw);
  const auto quad = sparse_attention(in, Precision::binary128), twice = sparse_attention(in);
  for (std::size_t i = 0; i < quad.value.size(); ++i)
    EXPECT_NEAR(quad.value[i], twice.value[i], 1e-14);
}

CompositeAttentionInputs random_composite(std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                                          double weight_scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  CompositeAttentionInputs in;
  in.composites = in.values = Tensor();
  in.composites = Tensor(DType::bf16, {tokens, heads, dim});
  in.values = Tensor(DType::bf16, {tokens, heads, dim});
  in.query_weight = Tensor(DType::bf16, {heads, dim, dim});
  in.key_weight = Tensor(DType::bf16, {heads, dim, dim});
  fill_with(in.composites, 1, random);
  fill_with(in.values, 1, random);
  fill_with(in.query_weight, weight_scale, random);
  fill_with(in.key_weight, weight_scale, random);
  return in;
}

std::vector<float> f32_composite(const CompositeAttentionInputs& in, bool online,
                                 SoftmaxFault fault = SoftmaxFault::none) {
  const std::int64_t tokens = in.composites.dim(0), heads = in.composites.dim(1);
  const std::int64_t dim = in.composites.dim(2);
  const auto decompressed = [&](const Tensor& weight, std::int64_t t, std::int64_t h) {
    std::vector<float> result;
    for (std::int64_t c = 0; c < dim; ++c)
      result.push_back(
          f32_dot(f32_row(weight, h * dim + c, dim), f32_row(in.composites, t * heads + h, dim)));
    return result;
  };
  std::vector<float> outputs;
  for (std::int64_t row = 0; row < tokens * heads; ++row) {
    const std::int64_t t = row / heads, h = row % heads;
    const auto query = decompressed(in.query_weight, t, h);
    std::vector<float> scores;
    std::vector<std::vector<float>> values;
    const std::int64_t seen = fault == SoftmaxFault::future_token   ? t + 2
                              : fault == SoftmaxFault::last_dropped ? std::max<std::int64_t>(t, 1)
                                                                    : t + 1;
    for (std::int64_t s = 0; s < std::min(seen, tokens); ++s) {
      const float scale = 1 / std::sqrt(static_cast<float>(dim));
      const float dot = f32_dot(query, decompressed(in.key_weight, s, h));
      scores.push_back(fault == SoftmaxFault::no_scale ? dot : dot * scale);
      values.push_back(f32_row(in.values, s * heads + h, dim));
    }
    const auto result = f32_attend(scores, values, online);
    outputs.insert(outputs.end(), result.begin(), result.end());
  }
  return outputs;
}

RC_GTEST_PROP(CompositeAttention, BinaryThirtyTwoStaysWithinTheBound, ()) {
  const auto in = random_composite(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 3),
                                   *rc::gen::element(1, 8, 16), *rc::gen::element(0.0, 0.3, 3.0),
                                   *rc::gen::arbitrary<std::uint64_t>());
  const auto expected = composite_attention(in);
  RC_ASSERT(worst_of(expected, f32_composite(in, false)) <= 1);
  RC_ASSERT(worst_of(expected, f32_composite(in, true)) <= 1);
}

TEST(CompositeAttention, MaskOffByOneAndMissingScaleAreCaught) {
  const auto in = random_composite(20, 2, 16, 0.3, 5);
  const auto expected = composite_attention(in);
  EXPECT_GT(worst_of(expected, f32_composite(in, false)), 1e-3);
  for (const auto fault :
       {SoftmaxFault::future_token, SoftmaxFault::last_dropped, SoftmaxFault::no_scale})
    EXPECT_GT(worst_of(expected, f32_composite(in, false, fault)), 10) << static_cast<int>(fault);
}

TEST(CompositeAttention, FirstTokenSeesItselfAlone) {
  const auto in = random_composite(3, 1, 4, 0.5, 6);
  const auto answer = composite_attention(in);
  for (std::int64_t c = 0; c < 4; ++c)
    EXPECT_EQ(answer.value[static_cast<std::size_t>(c)], in.values.at(c));
}

TEST(CompositeAttention, WithIdentityProjectionsItIsSparseAttentionOverAllThatCameBefore) {
  const std::int64_t tokens = 12, dim = 8;
  auto in = random_composite(tokens, 1, dim, 0, 7);
  for (std::int64_t c = 0; c < dim; ++c) {
    in.query_weight.set(c * dim + c, 1);
    in.key_weight.set(c * dim + c, 1);
  }
  SparseAttentionInputs sparse;
  sparse.queries = sparse.keys = in.composites;
  sparse.values = in.values;
  sparse.selection = Tensor(DType::i32, {tokens, tokens});
  for (std::int64_t i = 0; i < tokens * tokens; ++i)
    sparse.selection.set(i, i % tokens <= i / tokens ? static_cast<double>(i % tokens) : -1);
  sparse.scale = static_cast<float>(1 / std::sqrt(8.0));
  const auto causal = composite_attention(in), selected = sparse_attention(sparse);
  for (std::size_t i = 0; i < causal.value.size(); ++i)
    EXPECT_NEAR(causal.value[i], selected.value[i], 1e-7);  // the scale there is a binary32
}

}  // namespace
}  // namespace indexpool::reference
