// Linear attention: both forms of the reference are one function, binary32 implementations of
// either stay within its enclosure from 1 to 8192 tokens, and wrong ones do not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"

#include "f32_attention.hpp"

namespace indexpool::reference {
namespace {

// Largest |answer - value| / bound; above 1: outside.
double worst(const Bounded& expected, const std::vector<float>& answer) {
  double result = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const double off = answer[i] - expected.value[i];
    const double room =
        off > 0 ? expected.high[i] - expected.value[i] : expected.value[i] - expected.low[i];
    if (off != 0) result = std::max(result, std::abs(off) / room);
  }
  return result;
}
double worst(const LinearAttention& expected, const F32Linear& answer) {
  return std::max(worst(expected.outputs, answer.outputs), worst(expected.state, answer.state));
}
double largest_difference(const Bounded& a, const Bounded& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.value.size(); ++i)
    result = std::max(result, std::abs(a.value[i] - b.value[i]));
  return result;
}
bool overlap(const Bounded& a, const Bounded& b) {
  for (std::size_t i = 0; i < a.value.size(); ++i) {
    if (a.low[i] > b.high[i] || b.low[i] > a.high[i]) return false;
  }
  return true;
}
// Of the largest output.
double loosest(const Bounded& x) {
  double width = 0, size = 0;
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    width = std::max(width, x.high[i] - x.low[i]);
    size = std::max(size, std::abs(x.value[i]));
  }
  return width / size;
}

constexpr Order orders[] = {Order::forward, Order::reverse, Order::tree, Order::fused};

class LinearLengths : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Tokens, LinearLengths, testing::Values(1, 2, 63, 64, 65, 1000, 8192));

TEST_P(LinearLengths, BothFormsStayWithinTheDerivedBounds) {
  LinearDraw draw;
  draw.tokens = GetParam();
  draw.seed = static_cast<std::uint64_t>(GetParam());
  const auto in = random_linear(draw);
  const auto recurrent = linear_attention(in);
  const auto chunked = linear_attention_chunked(in, 64);
  EXPECT_LE(largest_difference(recurrent.outputs, chunked.outputs), 1e-13);
  EXPECT_LE(largest_difference(recurrent.state, chunked.state), 1e-13);
  EXPECT_TRUE(overlap(recurrent.outputs, chunked.outputs));
  for (const Order order : {Order::forward, Order::tree}) {
    const double by_token = worst(recurrent, f32_linear(in, 0, order));
    const double by_chunk = worst(chunked, f32_linear(in, 64, order));
    EXPECT_LE(by_token, 1);
    EXPECT_LE(by_chunk, 1);
    EXPECT_GT(by_token, 1e-3) << "the bound says nothing";
    EXPECT_GT(by_chunk, 1e-4) << "the bound says nothing";
  }
  // Still a bound after any number of tokens: errors are forgotten as the state is.
  EXPECT_LT(loosest(recurrent.outputs), 1e-2);
  EXPECT_LT(loosest(chunked.outputs), 1e-2);
}

RC_GTEST_PROP(LinearAttentionBound, HoldsForAnyOrderShapeAndDecay, ()) {
  LinearDraw draw;
  draw.tokens = *rc::gen::inRange(1, 80);
  draw.heads = *rc::gen::inRange(1, 3);
  draw.keys = *rc::gen::element(1, 4, 16);
  draw.values = *rc::gen::inRange(1, 4);
  draw.storage = *rc::gen::element(DType::f32, DType::bf16, DType::f16);
  draw.decay = *rc::gen::element(0.0, 0.01, 1.0, 20.0);
  draw.key_scale = *rc::gen::element(1e-4, 1.0, 100.0);
  draw.same_keys = *rc::gen::arbitrary<bool>();
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto in = random_linear(draw);
  const auto order = *rc::gen::elementOf(std::vector<Order>(std::begin(orders), std::end(orders)));
  const auto chunk = *rc::gen::element<std::int64_t>(1, 5, 16, 64);
  const auto recurrent = linear_attention(in);
  const auto chunked = linear_attention_chunked(in, chunk);
  RC_ASSERT(largest_difference(recurrent.outputs, chunked.outputs) <= 1e-11);
  RC_ASSERT(worst(recurrent, f32_linear(in, 0, order)) <= 1);
  RC_ASSERT(worst(chunked, f32_linear(in, chunk, order)) <= 1);
}

TEST(LinearAttention, StateCarriedAcrossCallsEqualsOneCall) {
  LinearDraw draw;
  draw.tokens = 40;
  draw.heads = 2;
  draw.storage = DType::f32;
  const auto all = random_linear(draw);
  for (const std::int64_t split : {1, 17, 39}) {
    auto first = all, second = all;
    const auto part = [&](const Tensor& tensor, std::int64_t begin, std::int64_t end) {
      Shape shape = tensor.shape();
      shape[0] = end - begin;
      Tensor result(tensor.dtype(), shape);
      const std::int64_t row = tensor.size() / tensor.dim(0);
      for (std::int64_t i = 0; i < result.size(); ++i) result.set(i, tensor.at(begin * row + i));
      return result;
    };
    const auto cut = [&](LinearAttentionInputs& in, std::int64_t begin, std::int64_t end) {
      for (Tensor LinearAttentionInputs::*member :
           {&LinearAttentionInputs::queries, &LinearAttentionInputs::keys,
            &LinearAttentionInputs::values, &LinearAttentionInputs::log_decay,
            &LinearAttentionInputs::beta})
        in.*member = part(all.*member, begin, end);
    };
    cut(first, 0, split);
    cut(second, split, draw.tokens);
    const auto whole = f32_linear(all, 0);
    const auto before = f32_linear(first, 0);
    second.state = all.state.clone();
    for (std::size_t i = 0; i < before.state.size(); ++i)
      second.state.set(static_cast<std::int64_t>(i), before.state[i]);
    auto outputs = before.outputs;
    const auto after = f32_linear(second, 0);
    outputs.insert(outputs.end(), after.outputs.begin(), after.outputs.end());
    EXPECT_EQ(outputs, whole.outputs);
    EXPECT_EQ(after.state, whole.state);
    // So the enclosure of the whole covers what the second call gives; the second call's own starts
    // anew from the stored state.
    EXPECT_LE(worst(linear_attention(all).state, after.state), 1);
    EXPECT_LE(worst(linear_attention(second), after), 1);
    EXPECT_TRUE(overlap(linear_attention(all).state, linear_attention(second).state));
    EXPECT_TRUE(overlap(linear_attention(all).state, linear_attention_chunked(second).state));
  }
}

TEST(LinearAttention, ThreeTokensByHand) {
  // Unit keys e0, e1, e0 (eps aside), beta 1, decay ln 2 of channel 0: the third token finds
  // v0 / 4 under e0 and replaces it.
  LinearAttentionInputs in;
  in.queries = in.keys = Tensor(DType::f32, {3, 1, 2});
  in.queries = Tensor(DType::f32, {3, 1, 2});
  in.values = Tensor(DType::f32, {3, 1, 1});
  in.log_decay = Tensor(DType::f32, {3, 1, 2});
  in.beta = Tensor(DType::f32, {3, 1});
  in.state = Tensor(DType::f32, {1, 2, 1});
  in.scale = 1;
  in.eps = 1e-12f;
  const double keys[] = {1, 0, 0, 1, 1, 0}, queries[] = {1, 0, 1, 0, 1, 1}, values[] = {8, 3, 5};
  for (std::int64_t i = 0; i < 6; ++i) {
    in.keys.set(i, keys[i]);
    in.queries.set(i, queries[i]);
    in.log_decay.set(i, i % 2 == 0 ? -std::log(2.0) : 0);
  }
  for (std::int64_t t = 0; t < 3; ++t) {
    in.values.set(t, values[t]);
    in.beta.set(t, 1);
  }
  for (const auto& answer : {linear_attention(in), linear_attention_chunked(in, 2)}) {
    EXPECT_NEAR(answer.outputs.value[0], 8, 1e-6);
    EXPECT_NEAR(answer.outputs.value[1], 4, 1e-6);
    EXPECT_NEAR(answer.outputs.value[2], (5 + 3) / std::sqrt(2.0), 1e-6);
    EXPECT_NEAR(answer.state.value[0], 5, 1e-6);
    EXPECT_NEAR(answer.state.value[1], 3, 1e-6);
  }
}

TEST(LinearAttention, PlantedErrorsAreCaught) {
  LinearDraw draw;
  draw.tokens = 130;
  const auto in = random_linear(draw);
  const auto recurrent = linear_attention(in);
  const auto chunked = linear_attention_chunked(in, 64);
  for (const Fault fault :
       {Fault::decay_after_update, Fault::no_beta, Fault::no_scale, Fault::no_normalisation})
    EXPECT_GT(worst(recurrent, f32_linear(in, 0, Order::forward, fault)), 10)
        << static_cast<int>(fault);
  for (const Fault fault : {Fault::no_beta, Fault::no_scale, Fault::no_normalisation,
                            Fault::state_at_seam, Fault::decay_at_seam, Fault::include_next})
    EXPECT_GT(worst(chunked, f32_linear(in, 64, Order::forward, fault)), 10)
        << static_cast<int>(fault);
}

TEST(LinearAttention, Binary128AgreesWithBinary64) {
  LinearDraw draw;
  draw.tokens = 20;
  draw.keys = 4;
  draw.values = 2;
  const auto in = random_linear(draw);
  const auto quad = linear_attention(in, Precision::binary128);
  EXPECT_LE(largest_difference(quad.outputs, linear_attention(in).outputs), 1e-14);
  const auto chunked = linear_attention_chunked(in, 8, Precision::binary128);
  EXPECT_LE(largest_difference(chunked.outputs, quad.outputs), 0);
  EXPECT_LE(largest_difference(chunked.state, quad.state), 0);
}

TEST(LinearAttention, OverflowingNormsLeaveTheResultOpen) {
  LinearDraw draw;
  draw.storage = DType::f32;
  auto in = random_linear(draw);
  in.keys.set(0, 1e30);
  const auto answer = linear_attention(in);
  EXPECT_TRUE(is_open(answer.outputs.low.back(), answer.outputs.high.back()));
}

TEST(LinearAttention, BadOperandsAreNamed) {
  auto in = random_linear({});
  in.beta.set(3, 1.5);
  EXPECT_THROW(linear_attention(in), ConfigError);
  in = random_linear({});
  in.log_decay.set(0, 0.25);
  EXPECT_THROW(linear_attention(in), ConfigError);
  EXPECT_THROW(linear_attention_chunked(random_linear({}), 0), ConfigError);
}

}  // namespace
}  // namespace indexpool::reference
