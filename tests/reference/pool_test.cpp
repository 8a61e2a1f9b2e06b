// Pooling: laws of a softmax-weighted mean, and enclosures that contain binary32 programs and
// exclude wrong ones.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"

#include "f32_pool.hpp"
#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

// The mode of the engines, its pooled keys kept in binary32 so that nothing hides in a rounding.
NumericMode wide_mode() {
  NumericMode mode = numeric_mode("bf16");
  mode.pooled = DType::f32;
  mode.hadamard = false;
  return mode;
}

Draw any_draw() {
  Draw draw;
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  draw.kpool = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 5, 8, 16);
  draw.dim = *rc::gen::element<std::int64_t>(1, 8, 32);
  draw.lengths = *rc::gen::container<std::vector<std::int64_t>>(
      3, rc::gen::inRange<std::int64_t>(0, 3 * draw.kpool + 2));
  draw.gate_scale = *rc::gen::element(0.0, 0.1, 1.0, 8.0, 40.0);
  draw.key_scale = *rc::gen::element(1e-6, 1.0, 1e4);
  return draw;
}

struct ChannelView {
  std::vector<float> scores, keys;
};
ChannelView channel_of(const IndexerInputs& in, std::int64_t row, std::int64_t channel) {
  ChannelView view;
  const auto dim = in.config.index_head_dim;
  for (std::int64_t j = 0; j < in.config.index_kpool; ++j) {
    const auto gate = static_cast<float>(in.gate_scores.at((row + j) * dim + channel));
    view.scores.push_back(gate + static_cast<float>(in.ape.at(j * dim + channel)));
    view.keys.push_back(static_cast<float>(in.keys.at((row + j) * dim + channel)));
  }
  return view;
}

// Calls visit(element of the result, channel) for every pooled element.
template <class Visit>
void for_each_element(const IndexerInputs& in, const Pooled& pooled, const Visit& visit) {
  const auto dim = in.config.index_head_dim;
  for (std::size_t s = 0; s < in.sequences.size(); ++s) {
    for (auto p = pooled.first_pool[s]; p < pooled.first_pool[s + 1]; ++p) {
      const auto row =
          in.sequences[s].first_row + (p - pooled.first_pool[s]) * in.config.index_kpool;
      for (std::int64_t c = 0; c < dim; ++c) {
        visit(static_cast<std::size_t>(p * dim + c), channel_of(in, row, c));
      }
    }
  }
}

RC_GTEST_PROP(PoolEnclosure, ContainsEveryBinary32Program, (bool extreme)) {
  auto draw = any_draw();
  draw.extreme_gates = extreme;
  for (const auto& mode : {wide_mode(), numeric_mode("bf16")}) {
    const auto in = random_inputs(draw, mode);
    const auto pooled = pool(in);
    for (const auto& program : correct_programs(draw.seed)) {
      for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
        const double answer =
            round_to(mode.pooled, static_cast<double>(program.run(channel.scores, channel.keys)));
        RC_LOG(program.name);
        RC_ASSERT(answer >= pooled.pooled.low[i]);
        RC_ASSERT(answer <= pooled.pooled.high[i]);
      });
    }
  }
}

// Softmax in binary32, then probabilities and products rounded to storage (transformers).
double rounded_products(const ChannelView& channel, DType storage, bool reverse) {
  const std::size_t n = channel.keys.size();
  const float m = maximum(channel.scores);
  std::vector<float> w;
  float total = 0, sum = 0;
  for (const float z : channel.scores) w.push_back(std::exp(z - m));
  for (std::size_t j = 0; j < n; ++j) total += w[reverse ? n - 1 - j : j];
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t j = reverse ? n - 1 - i : i;
    const double p = round_to(storage, static_cast<double>(w[j] / total));
    sum += static_cast<float>(round_to(storage, p * static_cast<double>(channel.keys[j])));
  }
  return round_to(storage, static_cast<double>(sum));
}

RC_GTEST_PROP(PoolEnclosure, ContainsRoundedProducts, (bool extreme, bool reverse)) {
  auto draw = any_draw();
  draw.extreme_gates = extreme;
  draw.key_scale = std::min(draw.key_scale, 100.0);  // stays within f16
  for (const char* name : {"hf_f32", "hf_bf16", "hf_f16"}) {
    const auto in = random_inputs(draw, numeric_mode(name));
    const auto pooled = pool(in);
    for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
      const double answer = rounded_products(channel, in.mode.storage, reverse);
      RC_LOG(name);
      RC_ASSERT(answer >= pooled.pooled.low[i]);
      RC_ASSERT(answer <= pooled.pooled.high[i]);
    });
  }
}

RC_GTEST_PROP(Pool, WeightsSumToOneWithinTheirBound, ()) {
  const auto in = random_inputs(any_draw(), numeric_mode("bf16"));
  const auto pooled = pool(in);
  for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
    const float m = maximum(channel.scores);
    float total = 0, sum = 0;
    for (const float z : channel.scores) total += std::exp(z - m);
    for (const float z : channel.scores) sum += std::exp(z - m) / total;
    const auto p = i / static_cast<std::size_t>(in.config.index_head_dim);
    RC_ASSERT(std::abs(static_cast<double>(sum) - 1) <= pooled.pool_weight_sum.high[p]);
  });
}

TEST(Pool, WeightsOfASingleTokenMayBeOffByTheirQuotient) {
  Draw draw;
  draw.kpool = 1;
  for (const char* name : {"bf16", "hf_f32"}) {
    const auto pooled = pool(random_inputs(draw, numeric_mode(name)));
    EXPECT_GE(pooled.pool_weight_sum.high[0], 0x1p-22) << name;  // 2 ulp: div.full.f32
    EXPECT_LE(pooled.pool_weight_sum.high[0], 0x1p-21) << name;
  }
}

RC_GTEST_PROP(Pool, StaysBetweenTheSmallestAndTheLargestKey, ()) {
  const auto in = random_inputs(any_draw(), numeric_mode("bf16"));
  const auto pooled = pool(in);
  for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
    const auto [least, most] = std::ranges::minmax(channel.keys);
    RC_ASSERT(pooled.pooled.value[i] >= static_cast<double>(least));
    RC_ASSERT(pooled.pooled.value[i] <= static_cast<double>(most));
    RC_ASSERT(pooled.exact.low[i] <= static_cast<double>(most));
    RC_ASSERT(pooled.exact.high[i] >= static_cast<double>(least));
  });
}

// Rows of every pool in reverse.
void reverse_pools(Tensor& tensor, const IndexerInputs& in) {
  const Tensor before = tensor.clone();
  const auto dim = in.config.index_head_dim, kpool = in.config.index_kpool;
  for (std::int64_t row = 0; row < in.rows() / kpool * kpool; ++row) {
    const auto from = row / kpool * kpool + (kpool - 1 - row % kpool);
    for (std::int64_t c = 0; c < dim; ++c) tensor.set(row * dim + c, before.at(from * dim + c));
  }
}

RC_GTEST_PROP(Pool, DoesNotDependOnTheOrderOfItsTokensWithoutABias, ()) {
  auto draw = any_draw();
  draw.ape_scale = 0;
  draw.lengths = {3 * draw.kpool};
  auto in = random_inputs(draw, wide_mode());
  const auto before = pool(in);
  reverse_pools(in.keys, in);
  reverse_pools(in.gate_scores, in);
  const auto after = pool(in);
  for (std::size_t i = 0; i < before.pooled.value.size(); ++i) {
    RC_ASSERT(after.pooled.value[i] >= before.pooled.low[i]);
    RC_ASSERT(after.pooled.value[i] <= before.pooled.high[i]);
  }
}

RC_GTEST_PROP(Pool, IgnoresAShiftCommonToItsGateScores, ()) {
  auto draw = any_draw();
  draw.ape_scale = 0;
  auto in = random_inputs(draw, wide_mode());
  // Multiples of 1/8 below 8: exact in bf16 with the shift too.
  for (std::int64_t i = 0; i < in.gate_scores.size(); ++i) {
    in.gate_scores.set(i, std::round(std::clamp(in.gate_scores.at(i), -7.0, 7.0) * 8) / 8);
  }
  const auto before = pool(in);
  for (std::int64_t i = 0; i < in.gate_scores.size(); ++i) {
    in.gate_scores.set(i, in.gate_scores.at(i) + 8);
  }
  const auto after = pool(in);
  RC_ASSERT(after.pooled.value == before.pooled.value);
  RC_ASSERT(after.pooled.low == before.pooled.low);
  RC_ASSERT(after.pooled.high == before.pooled.high);
}

RC_GTEST_PROP(Pool, ScalesExactlyWithPowersOfTwo, ()) {
  auto in = random_inputs(any_draw(), numeric_mode("vllm_fp8"));
  const auto before = pool(in);
  const double factor = std::ldexp(1.0, *rc::gen::inRange(-20, 21));
  for (std::int64_t i = 0; i < in.keys.size(); ++i) in.keys.set(i, in.keys.at(i) * factor);
  const auto after = pool(in);
  for (std::size_t i = 0; i < before.rotated.value.size(); ++i) {
    RC_ASSERT(after.pooled.value[i] == factor * before.pooled.value[i]);
    RC_ASSERT(after.rotated.value[i] == factor * before.rotated.value[i]);
    RC_ASSERT(after.rotated.low[i] == factor * before.rotated.low[i]);
    RC_ASSERT(after.rotated.high[i] == factor * before.rotated.high[i]);
  }
}

RC_GTEST_PROP(Pool, OfIdenticalKeysIsThatKey, ()) {
  auto draw = any_draw();
  auto in = random_inputs(draw, numeric_mode("bf16"));
  const auto dim = draw.dim;
  for (std::int64_t row = 1; row < in.rows(); ++row) {
    for (std::int64_t c = 0; c < dim; ++c) in.keys.set(row * dim + c, in.keys.at(c));
  }
  const auto pooled = pool(in);
  for (std::size_t i = 0; i < pooled.pooled.value.size(); ++i) {
    const double key = in.keys.at(static_cast<std::int64_t>(i) % dim);
    RC_ASSERT(pooled.pooled.low[i] == key);
    RC_ASSERT(pooled.pooled.high[i] == key);
  }
}

TEST(Pool, OfOneTokenIsItsKey) {
  Draw draw;
  draw.kpool = 1;
  draw.gate_scale = 30;
  for (const char* name : {"bf16", "hf_bf16", "hf_f32"}) {
    const auto in = random_inputs(draw, numeric_mode(name));
    const auto pooled = pool(in).pooled;
    for (std::size_t i = 0; i < pooled.value.size(); ++i) {
      EXPECT_EQ(pooled.value[i], in.keys.at(static_cast<std::int64_t>(i))) << name;
    }
  }
}

TEST(Pool, WithEqualGateScoresIsTheMean) {
  Draw draw;
  draw.gate_scale = draw.ape_scale = 0;
  draw.dim = 1;
  draw.lengths = {4};
  auto in = random_inputs(draw, numeric_mode("bf16"));
  const double keys[] = {1, -3, 0.5, 7.5};
  for (std::int64_t j = 0; j < 4; ++j) in.keys.set(j, keys[j]);
  const auto pooled = pool(in);
  EXPECT_EQ(pooled.pooled.value[0], 1.5);
  EXPECT_EQ(pooled.pooled.low[0], 1.5);
  EXPECT_EQ(pooled.pooled.high[0], 1.5);
  EXPECT_NEAR(pooled.exact.value[0], 1.5, 1e-15);
}

TEST(Pool, PositionBiasFollowsThePositionInsideThePool) {
  Draw draw;
  draw.gate_scale = draw.ape_scale = 0;
  draw.dim = 1;
  draw.lengths = {3, 8};  // the second sequence's pools start at its own first token
  auto in = random_inputs(draw, numeric_mode("bf16"));
  in.ape.set(2, 200);  // the third token of a pool takes all the weight
  for (std::int64_t row = 0; row < 11; ++row) in.keys.set(row, static_cast<double>(row));
  const auto pooled = pool(in);
  ASSERT_EQ(pooled.first_pool, (std::vector<std::int64_t>{0, 0, 2}));
  EXPECT_EQ(pooled.pooled.value, (std::vector<double>{5, 9}));
}

TEST(Pool, PartialPoolStaysInTail) {
  Draw draw;
  for (const std::int64_t length : {0, 1, 3, 4, 5, 7, 8}) {
    draw.lengths = {length};
    const auto pooled = pool(random_inputs(draw, numeric_mode("bf16")));
    EXPECT_EQ(pooled.first_pool.back(), length / 4) << length;
  }
}

TEST(Pool, RefusesWhatHasNoPooledKey) {
  auto in = random_inputs(Draw{}, numeric_mode("bf16"));
  in.keys.set(5, std::nan(""));
  EXPECT_THROW(pool(in), ConfigError);
  in.keys.set(5, 1);
  for (std::int64_t j = 0; j < 4; ++j) in.gate_scores.set(j * 32, -HUGE_VAL);
  EXPECT_THROW(pool(in), ConfigError);
}

TEST(Pool, GateScoreOfMinusInfinityLeavesItsTokenOut) {
  Draw draw;
  draw.dim = 1;
  draw.lengths = {4};
  auto in = random_inputs(draw, numeric_mode("bf16"));
  for (std::int64_t j = 0; j < 4; ++j) in.gate_scores.set(j, j == 2 ? 3.0 : -HUGE_VAL);
  const auto pooled = pool(in).pooled;
  EXPECT_EQ(pooled.low[0], in.keys.at(2));
  EXPECT_EQ(pooled.high[0], in.keys.at(2));
}

// The bound adds up every rounding at its worst: 17 in the sums and the quotient, 17 in the
// exponentials, 3 per unit of |z - m|. A program's errors are a few half roundings of either sign.
TEST(PoolEnclosure, IsTightBesideTheErrorOfAProgram) {
  Draw draw;
  draw.lengths = {4000};
  const auto in = random_inputs(draw, wide_mode());
  const auto pooled = pool(in, Precision::binary64);
  std::vector<double> widths, errors;
  for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
    const double answer = static_cast<double>(tree(channel.scores, channel.keys));
    widths.push_back((pooled.pooled.high[i] - pooled.pooled.low[i]) / 2);
    errors.push_back(std::abs(answer - pooled.exact.value[i]));
  });
  std::ranges::sort(widths);
  std::ranges::sort(errors);
  const double ratio = widths[widths.size() / 2] / errors[errors.size() * 99 / 100];
  RecordProperty("median_reach_over_99th_percentile_error", std::to_string(ratio));
  EXPECT_GT(ratio, 1);
  EXPECT_LT(ratio, 25);
}

// Its width, some 70 u A (A the weighted mean of |keys|), against a spacing of at least 2^-8 |y|:
// 0.1 % where A = |y|, a few times that as keys of either sign cancel.
TEST(PoolEnclosure, IsASingleStoredNumberAlmostAlways) {
  Draw draw;
  draw.lengths = {4000};
  const auto pooled = pool(random_inputs(draw, numeric_mode("bf16"))).pooled;
  std::int64_t wide = 0;
  for (std::size_t i = 0; i < pooled.value.size(); ++i) wide += pooled.low[i] != pooled.high[i];
  EXPECT_LT(static_cast<double>(wide), 0.01 * static_cast<double>(pooled.size()));
}

TEST(PoolEnclosure, ExcludesWrongPrograms) {
  Draw draw;
  draw.lengths = {2000};
  for (const bool extreme : {false, true}) {
    draw.extreme_gates = extreme;
    const auto in = random_inputs(draw, numeric_mode("bf16"));
    const auto pooled = pool(in);
    for (const auto& program : wrong_programs()) {
      if (!extreme && program.name == "no shift by the maximum") continue;  // harmless there
      std::int64_t outside = 0;
      for_each_element(in, pooled, [&](std::size_t i, const ChannelView& channel) {
        const double answer =
            static_cast<double>(rounded_bf16(program.run(channel.scores, channel.keys)));
        outside += !(answer >= pooled.pooled.low[i] && answer <= pooled.pooled.high[i]);
      });
      EXPECT_GT(outside, 0) << program.name << (extreme ? ", extreme gates" : "");
    }
  }
}

}  // namespace
}  // namespace indexpool::reference
