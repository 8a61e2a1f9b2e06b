// The gates: safe decay and the mixture of two branches.
#include <bit>
#include <cstring>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"

#include "random_attention.hpp"

namespace indexpool::reference {
namespace {

float f32_sigmoid(float x, bool other_form) {
  if (other_form && x < 80) return std::exp(x) / (1 + std::exp(x));
  return 1 / (1 + std::exp(-x));
}

GateFusionInputs random_fusion(std::int64_t rows, double logit_scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  GateFusionInputs in;
  in.gate_logits = Tensor(DType::f32, {rows, 2});
  in.a = Tensor(DType::f32, {rows, 2, 4});
  in.b = Tensor(DType::f32, {rows, 2, 4});
  fill_with(in.gate_logits, logit_scale, random);
  fill_with(in.a, 1, random);
  fill_with(in.b, 3, random);
  return in;
}

enum class Form { sum, other_sigmoid, interpolated, swapped };
std::vector<float> f32_fusion(const GateFusionInputs& in, Form form) {
  std::vector<float> outputs;
  for (std::int64_t i = 0; i < in.a.size(); ++i) {
    const auto logit = static_cast<float>(in.gate_logits.at(i / in.a.dim(2)));
    const auto a = static_cast<float>(in.a.at(i)), b = static_cast<float>(in.b.at(i));
    float g = f32_sigmoid(logit, form == Form::other_sigmoid);
    if (form == Form::swapped) g = 1 - g;
    if (g == 0 || g == 1)
      outputs.push_back(g == 1 ? a : b);
    else
      outputs.push_back(form == Form::interpolated ? b + g * (a - b) : g * a + (1 - g) * b);
  }
  return outputs;
}

RC_GTEST_PROP(GateFusion, BinaryThirtyTwoStaysWithinTheBound, ()) {
  const auto in = random_fusion(8, *rc::gen::element(0.0, 1.0, 10.0, 60.0, 300.0),
                                *rc::gen::arbitrary<std::uint64_t>());
  const auto expected = gate_fusion(in);
  for (const Form form : {Form::sum, Form::other_sigmoid, Form::interpolated})
    RC_ASSERT(worst_of(expected, f32_fusion(in, form)) <= 1);
}

TEST(GateFusion, SwappedBranchesAreCaught) {
  const auto in = random_fusion(8, 1, 3);
  EXPECT_GT(worst_of(gate_fusion(in), f32_fusion(in, Form::sum)), 1e-3);
  EXPECT_GT(worst_of(gate_fusion(in), f32_fusion(in, Form::swapped)), 10);
}

TEST(GateFusion, ExtremesAreABranchBitForBit) {
  auto in = random_fusion(4, 1, 4);
  const double logits[] = {HUGE_VAL, -HUGE_VAL, 104, -104, 1e30, -1e30, 200, -200};
  for (std::int64_t i = 0; i < 8; ++i) in.gate_logits.set(i, logits[i]);
  // The branch that is not taken may hold anything.
  in.b.set(0, std::nan(""));
  in.a.set(4, HUGE_VAL);
  const auto answer = gate_fusion(in);
  const auto f32 = f32_fusion(in, Form::sum);
  for (std::int64_t i = 0; i < in.a.size(); ++i) {
    const Tensor& branch = i / 4 % 2 == 0 ? in.a : in.b;
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(answer.low[at], branch.at(i));
    EXPECT_EQ(answer.high[at], branch.at(i));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f32[at]),
              std::bit_cast<std::uint32_t>(static_cast<float>(branch.at(i))));
  }
  in.gate_logits.set(0, 103);
  in.b.set(0, 5);
  EXPECT_LT(gate_fusion(in).low[0], gate_fusion(in).high[0]);
}

TEST(GateFusion, EvenGateIsTheMean) {
  auto in = random_fusion(1, 0, 5);
  const auto answer = gate_fusion(in);
  for (std::int64_t i = 0; i < in.a.size(); ++i)
    EXPECT_NEAR(answer.value[static_cast<std::size_t>(i)], (in.a.at(i) + in.b.at(i)) / 2, 1e-15);
}

TEST(GateFusion, GateThatIsNotANumberIsRefused) {
  auto in = random_fusion(1, 1, 6);
  in.gate_logits.set(1, std::nan(""));
  EXPECT_THROW(gate_fusion(in), ConfigError);
}

SafeGateInputs random_gate(double scale, double steepness, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SafeGateInputs in;
  in.features = Tensor(DType::bf16, {6, 2, 4});
  in.a_log = Tensor(DType::f32, {2});
  in.dt_bias = Tensor(DType::f32, {2, 4});
  fill_with(in.features, scale, random);
  fill_with(in.a_log, steepness, random);
  fill_with(in.dt_bias, 1, random);
  return in;
}
std::vector<float> f32_safe_gate(const SafeGateInputs& in, bool other_form, bool no_bias = false) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < in.features.size(); ++i) {
    const std::int64_t head = i / 4 % 2;
    const auto bias = no_bias ? 0 : static_cast<float>(in.dt_bias.at(head * 4 + i % 4));
    const float x = std::exp(static_cast<float>(in.a_log.at(head))) *
                    (static_cast<float>(in.features.at(i)) + bias);
    result.push_back(-5 * f32_sigmoid(x, other_form));
  }
  return result;
}

RC_GTEST_PROP(SafeGate, BinaryThirtyTwoStaysWithinTheBound, ()) {
  const auto in = random_gate(*rc::gen::element(0.0, 1.0, 30.0), *rc::gen::element(0.5, 3.0),
                              *rc::gen::arbitrary<std::uint64_t>());
  const auto expected = safe_gate(in);
  RC_ASSERT(worst_of(expected, f32_safe_gate(in, false)) <= 1);
  RC_ASSERT(worst_of(expected, f32_safe_gate(in, true)) <= 1);
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    RC_ASSERT(expected.low[i] >= -5);
    RC_ASSERT(expected.high[i] <= 0);
  }
}

TEST(SafeGate, AForgottenBiasIsCaught) {
  const auto in = random_gate(1, 0.5, 7);
  EXPECT_GT(worst_of(safe_gate(in), f32_safe_gate(in, false)), 1e-3);
  EXPECT_GT(worst_of(safe_gate(in), f32_safe_gate(in, false, true)), 10);
}

}  // namespace
}  // namespace indexpool::reference
