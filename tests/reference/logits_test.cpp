// Logits: binary32 programs and models of tensor cores inside their enclosures, mistakes outside.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {
namespace {

// Owns what LogitOperands refers to.
struct Operands {
  std::int64_t rows = 3, pools = 6, heads = 4, dim = 32;
  double logit_scale = 1 / std::sqrt(128.0);
  std::vector<double> queries, query_scales, head_weights, keys, pool_scales;

  LogitOperands view() const {
    return {heads, dim, queries, query_scales, head_weights, logit_scale, keys, pool_scales};
  }
  std::vector<std::int64_t> visible() const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(rows), pools);
  }
};

enum class Scales { none, powers, plain };

Operands random_operands(std::uint64_t seed, DType code, Scales scales, std::int64_t dim) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Operands o;
  o.dim = dim;
  const double spread = code == DType::e4m3 ? 100 : code == DType::i8 ? 40 : 1;
  const auto draw = [&](std::int64_t count) {
    std::vector<double> x(static_cast<std::size_t>(count));
    for (double& value : x) value = round_to(code, spread * normal(random));
    return x;
  };
  const auto scale = [&](std::int64_t count) {
    std::vector<double> x(static_cast<std::size_t>(count));
    for (double& value : x) {
      value = scales == Scales::powers ? std::exp2(std::round(normal(random)) - 8)
                                       : round_to(DType::f32, std::exp(normal(random)) / 100);
    }
    return x;
  };
  o.queries = draw(o.rows * o.heads * dim);
  o.keys = draw(o.pools * dim);
  for (std::int64_t i = 0; i < o.rows * o.heads; ++i) {
    o.head_weights.push_back(round_to(DType::f32, normal(random)));
  }
  if (scales != Scales::none) {
    o.query_scales = scale(o.rows * o.heads);
    o.pool_scales = scale(o.pools);
  }
  return o;
}

float as_float(double x) { return static_cast<float>(x); }

// Where a program multiplies by the scales.
enum class Order { unfused, fused, folded };

float dot_f32(const Operands& o, std::size_t row, std::size_t pool, bool reverse, float q_scale,
              float k_scale) {
  const auto dim = static_cast<std::size_t>(o.dim);
  float sum = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    const std::size_t d = reverse ? dim - 1 - i : i;
    const float q = as_float(o.queries[row * dim + d]) * q_scale;
    sum += q * (as_float(o.keys[pool * dim + d]) * k_scale);
  }
  return sum;
}

float program(const Operands& o, std::size_t row, std::size_t pool, Order order, bool reverse) {
  const auto heads = static_cast<std::size_t>(o.heads);
  const bool folded = order == Order::folded;
  const float k_scale = o.pool_scales.empty() ? 1 : as_float(o.pool_scales[pool]);
  float sum = 0;
  for (std::size_t i = 0; i < heads; ++i) {
    const std::size_t h = reverse ? heads - 1 - i : i;
    const float q_scale = o.query_scales.empty() ? 1 : as_float(o.query_scales[row * heads + h]);
    const float w = as_float(o.head_weights[row * heads + h]), c = as_float(o.logit_scale);
    const float dot =
        dot_f32(o, row * heads + h, pool, reverse, folded ? q_scale : 1, folded ? k_scale : 1);
    if (order == Order::unfused) {
      sum += w * std::max(dot * q_scale * c, 0.0F);
    } else {
      sum += w * (folded ? 1 : q_scale) * c * std::max(dot, 0.0F);
    }
  }
  return folded ? sum : sum * k_scale;
}

RC_GTEST_PROP(LogitEnclosure, ContainsBinary32Programs, (std::uint64_t seed, bool reverse)) {
  const auto code = *rc::gen::element(DType::f32, DType::bf16, DType::e4m3, DType::i8);
  const auto scales = *rc::gen::element(Scales::none, Scales::powers, Scales::plain);
  const auto order = *rc::gen::element(Order::unfused, Order::fused, Order::folded);
  const auto o = random_operands(seed, code, scales, *rc::gen::element<std::int64_t>(1, 8, 128));
  const auto bounds = logits(o.view(), o.visible(), f32_any_order());
  for (std::size_t i = 0; i < bounds.value.size(); ++i) {
    const auto pools = static_cast<std::size_t>(o.pools);
    const double answer = static_cast<double>(program(o, i / pools, i % pools, order, reverse));
    RC_ASSERT(answer >= bounds.low[i]);
    RC_ASSERT(answer <= bounds.high[i]);
  }
}

// Sum of the addends as a tensor core adds them: aligned to the largest exponent, `bits` fractional
// bits kept, the rest cut; the exact sum of these cut to binary32.
double truncating_sum(const std::vector<double>& addends, int bits) {
  int exponent = -1000;
  for (const double a : addends) {
    if (a != 0) exponent = std::max(exponent, std::ilogb(a));
  }
  double sum = 0;
  for (const double a : addends) {
    sum += std::ldexp(std::trunc(std::ldexp(a, bits - exponent)), exponent - bits);
  }
  if (sum == 0) return 0;
  const int spacing = std::ilogb(sum) - 23;
  return std::ldexp(std::trunc(std::ldexp(sum, -spacing)), spacing);
}

// mma.sync over k in instructions of `parts` chained sums of `step` products.
float mma_dot(const Operands& o, std::size_t row, std::size_t pool, const Accumulation& model) {
  const auto dim = static_cast<std::size_t>(o.dim), step = static_cast<std::size_t>(model.step);
  const auto parts = static_cast<std::size_t>(model.parts);
  double accumulator = 0;
  for (std::size_t first = 0; first < dim; first += step * parts) {
    double inner = model.parts > 1 ? 0 : accumulator;
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<double> addends{inner};
      for (std::size_t d = first + part * step; d < std::min(dim, first + (part + 1) * step); ++d) {
        addends.push_back(o.queries[row * dim + d] * o.keys[pool * dim + d]);
      }
      inner = truncating_sum(addends, model.fraction_bits);
    }
    accumulator = model.parts > 1 ? round_to(DType::f32, accumulator + inner) : inner;
  }
  return as_float(accumulator);
}

float fused_logit(const Operands& o, std::size_t row, std::size_t pool, const Accumulation& model) {
  const auto heads = static_cast<std::size_t>(o.heads);
  float sum = 0;
  for (std::size_t h = 0; h < heads; ++h) {
    const std::size_t at = row * heads + h;
    const float w = as_float(o.head_weights[at]) * as_float(o.query_scales[at]);
    sum = std::fma(w * as_float(o.logit_scale), std::max(mma_dot(o, at, pool, model), 0.0F), sum);
  }
  return sum * as_float(o.pool_scales[pool]);
}

RC_GTEST_PROP(LogitEnclosure, ContainsTensorCoreAccumulation, (std::uint64_t seed)) {
  const auto code = *rc::gen::element(DType::bf16, DType::e4m3);
  const auto o = random_operands(seed, code, Scales::plain, 128);
  auto hopper = mma_f16_bf16();  // what sm_90 was measured to do lies within the common bound
  hopper.step = 16;
  hopper.fraction_bits = 25;
  const bool bytes = code == DType::e4m3;
  const auto bound = bytes ? mma_e4m3() : mma_f16_bf16();
  const auto bounds = logits(o.view(), o.visible(), bound);
  for (const auto& model : bytes ? std::vector{bound} : std::vector{bound, hopper}) {
    for (std::size_t i = 0; i < bounds.value.size(); ++i) {
      const auto pools = static_cast<std::size_t>(o.pools);
      const double answer = static_cast<double>(fused_logit(o, i / pools, i % pools, model));
      RC_ASSERT(answer >= bounds.low[i]);
      RC_ASSERT(answer <= bounds.high[i]);
    }
  }
}

RC_GTEST_PROP(LogitEnclosure, OfIntegerDotsHoldsNoErrorButTheHeadSum, (std::uint64_t seed)) {
  const auto o = random_operands(seed, DType::i8, Scales::plain, 128);
  const auto bounds = logits(o.view(), o.visible(), mma_i8());
  const auto heads = static_cast<std::size_t>(o.heads), pools = static_cast<std::size_t>(o.pools);
  for (std::size_t i = 0; i < bounds.value.size(); ++i) {
    const std::size_t row = i / pools, pool = i % pools;
    float sum = 0;
    double magnitude = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = row * heads + h;
      double dot = 0;
      for (std::size_t d = 0; d < 128; ++d) {
        dot += o.queries[at * 128 + d] * o.keys[pool * 128 + d];
      }
      const float w = as_float(o.head_weights[at]) * as_float(o.query_scales[at]);
      sum += w * as_float(o.logit_scale) * std::max(as_float(dot), 0.0F);
      magnitude += std::abs(o.head_weights[at] * o.query_scales[at]) * o.logit_scale *
                   std::max(dot, 0.0) * o.pool_scales[pool];
    }
    const double answer = static_cast<double>(sum * as_float(o.pool_scales[pool]));
    RC_ASSERT(answer >= bounds.low[i]);
    RC_ASSERT(answer <= bounds.high[i]);
    RC_ASSERT(bounds.high[i] - bounds.low[i] <= 2.001 * 8 * 0x1p-24 * magnitude);
  }
}

TEST(Logits, ConversionOfLargeIntegerDotsRounds) {
  Operands o;
  o.rows = o.pools = o.heads = 1;
  o.dim = 2048;
  o.logit_scale = 1;
  o.head_weights = {1};
  o.queries.assign(2048, 127);
  o.keys.assign(2048, 127);
  o.keys[0] = 126;  // 33 032 065, odd and above 2^24
  const auto bounds = logits(o.view(), o.visible(), mma_i8());
  EXPECT_EQ(bounds.value[0], 2048.0 * 127 * 127 - 127);
  EXPECT_LE(bounds.low[0], bounds.value[0] - 1);
  EXPECT_GE(bounds.high[0], bounds.value[0] + 1);
}

TEST(Logits, OfSmallIntegersHaveExactDotsHoweverTheyAreAdded) {
  auto o = random_operands(4, DType::bf16, Scales::none, 64);
  for (auto* x : {&o.queries, &o.keys}) {
    for (double& value : *x) value = std::round(4 * value);
  }
  std::ranges::fill(o.head_weights, 0);
  for (std::size_t i = 0; i < o.head_weights.size(); i += 4) o.head_weights[i] = 1;
  const auto any = logits(o.view(), o.visible(), f32_any_order());
  const auto exact = logits(o.view(), o.visible(), mma_i8());
  EXPECT_EQ(any.low, exact.low);
  EXPECT_EQ(any.high, exact.high);
}

TEST(Logits, AreExactlyZeroWhereEveryHeadIsNegative) {
  Operands o;
  o.rows = 1;
  o.pools = 2;
  o.heads = 2;
  o.dim = 2;
  o.queries = {1, 0, 0, 1};
  o.head_weights = {0.3, -0.7};
  o.keys = {-1.1, -0.3, 0.7, -0.2};
  const auto bounds = logits(o.view(), o.visible(), f32_any_order());
  EXPECT_EQ(bounds.low[0], 0);
  EXPECT_EQ(bounds.high[0], 0);
  EXPECT_NEAR(bounds.value[1], 0.3 * 0.7 * o.logit_scale, 1e-15);
}

TEST(Logits, HandWorkedPoolWithNegativeHeadWeight) {
  Operands o;
  o.rows = o.pools = 1;
  o.heads = 2;
  o.dim = 2;
  o.logit_scale = 0.5;
  o.queries = {1, 2, -1, 3};
  o.query_scales = {2, 1};
  o.head_weights = {1, -0.25};
  o.keys = {3, 1};
  o.pool_scales = {4};
  // heads: relu(5) = 5 and relu(0) = 0; 4 * (1 * 2 * 0.5 * 5 - 0) = 20
  EXPECT_EQ(logits(o.view(), o.visible(), f32_any_order()).value[0], 20);
  o.keys = {1, 1};
  // relu(3), relu(2): 4 * (1 * 3 - 0.125 * 2) = 11
  EXPECT_EQ(logits(o.view(), o.visible(), f32_any_order()).value[0], 11);
}

TEST(LogitEnclosure, ContainsASubnormalProductWithTheScale) {
  Operands o;
  o.rows = o.pools = o.heads = o.dim = 1;
  o.logit_scale = 1;
  o.queries = o.keys = o.query_scales = {1};
  o.head_weights = {3 * 0x1p-140};
  o.pool_scales = {round_to(DType::f32, 0.003)};  // 4.6 steps of 2^-149: binary32 answers 5
  const auto bounds = logits(o.view(), o.visible(), f32_any_order());
  const auto answer = static_cast<double>(program(o, 0, 0, Order::fused, false));
  EXPECT_EQ(answer, 5 * 0x1p-149);
  EXPECT_LE(bounds.low[0], answer);
  EXPECT_GE(bounds.high[0], answer);
}

TEST(LogitEnclosure, ContainsASubnormalHeadWeightThatALargeQueryScaleEnlarges) {
  Operands o;
  o.rows = o.pools = o.heads = o.dim = 1;
  o.logit_scale = round_to(DType::f32, 0.3);
  o.queries = o.keys = {1};
  o.query_scales = {0x1p40};
  o.head_weights = {5 * 0x1p-149};  // 1.5 steps once scaled: binary32 keeps 2 of them
  const auto bounds = logits(o.view(), o.visible(), f32_any_order());
  const float weight = as_float(o.head_weights[0]) * as_float(o.logit_scale);
  const auto answer = static_cast<double>(weight * as_float(o.query_scales[0]));
  EXPECT_EQ(answer, 2 * 0x1p-109);
  EXPECT_LE(bounds.low[0], answer);
  EXPECT_GE(bounds.high[0], answer);
}

TEST(Logits, BeyondTheVisiblePoolsAreNaN) {
  const auto o = random_operands(1, DType::bf16, Scales::none, 8);
  const std::vector<std::int64_t> visible = {0, 2, 5};
  const auto bounds = logits(o.view(), visible, f32_any_order());
  ASSERT_EQ(bounds.shape, (Shape{3, 5}));
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(std::isnan(bounds.value[i]), static_cast<std::int64_t>(i % 5) >= visible[i / 5]);
  }
}

TEST(LogitEnclosure, ExcludesMistakes) {
  const auto o = random_operands(9, DType::e4m3, Scales::powers, 128);
  const auto bounds = logits(o.view(), o.visible(), mma_e4m3());
  auto no_relu = o, wrong_scale = o, narrow = o;
  std::ranges::reverse(wrong_scale.pool_scales);
  for (double& q : narrow.queries) q *= 1 + 0x1p-9;  // as a bf16 rounding would
  const auto outside = [&](const Bounded& other) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < other.value.size(); ++i) {
      count += other.value[i] < bounds.low[i] || other.value[i] > bounds.high[i];
    }
    return count;
  };
  EXPECT_GT(outside(logits(wrong_scale.view(), o.visible(), mma_e4m3())), 0);
  EXPECT_GT(outside(logits(narrow.view(), o.visible(), mma_e4m3())), 0);
  // Without the ReLU: relu(x) - relu(-x) = x.
  for (double& q : no_relu.queries) q = -q;
  const auto negative = logits(no_relu.view(), o.visible(), mma_e4m3());
  auto linear = bounds;
  for (std::size_t i = 0; i < linear.value.size(); ++i) linear.value[i] -= negative.value[i];
  EXPECT_GT(outside(linear), 0);
}

}  // namespace
}  // namespace indexpool::reference
