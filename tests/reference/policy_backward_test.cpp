// Enclosures of the backward pass: their values are the gradients of reference/training, which are
// checked by finite differences; binary32 programs of many kinds lie inside, wrong ones do not.
#include "indexpool/reference/policy_backward.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/training/gradients.hpp"

#include "backward_draws.hpp"
#include "backward_programs.hpp"

namespace indexpool::reference {
namespace {

std::vector<std::string> learnable() {
  std::vector<std::string> names;
  for (const auto& name : vector_policies())
    if (find_policy(name).learnable) names.push_back(name);
  names.emplace_back("plain_raw");
  return names;
}

// Groups of these draws share no row and no set: slots are rows, and each group has its weights.
RC_GTEST_PROP(PolicyBackward, ValuesAreTheGradientsOfTraining, ()) {
  for (const std::string& policy : learnable()) {
    RC_LOG(policy);
    auto draw = any_draw(policy);
    const Backward of = backward_of(draw);
    const auto operands = training::operands_of(of.in);
    const auto w = doubles(of.weights);
    const auto held = held_gradients(of.in, of.weights, of.grad_pooled);
    auto expected = training::backward_to_weights(operands.pooling, operands.arrays, w,
                                                  doubles(of.grad_pooled));
    expect_same(held.vectors, expected.direct["vectors"], "vectors");
    expect_same(held.pool_weights, expected.pool_weights, "weights");
    if (policy == "csa" && of.in.group_count() > 0)
      expect_same(summed(held.norm_weight, static_cast<std::size_t>(draw.dim)),
                  expected.direct["norm_weight"], "norm weight");
    auto through = training::Arrays<double>{};
    for (const auto& [name, values] : operands.arrays) through[name].assign(values.size(), 0.0);
    training::backward_through_weights(operands.pooling, operands.arrays, w,
                                       doubles(of.grad_weights), through);
    if (of.in.per_channel()) {
      const auto scores = through_softmax(of.weights, of.grad_weights, draw.kpool, draw.dim);
      expect_same(scores, through["gate_scores"], "gate scores");
    } else if (std::holds_alternative<RoleMatrix>(of.in.weights)) {
      expect_same(through_softmax(of.weights, of.grad_weights, draw.kpool, 1),
                  through["pool_matrix"], "pool matrix");
    } else if (std::holds_alternative<GateOperands>(of.in.weights)) {
      const std::vector<float> none(of.held.size());
      const auto gates = through_gates(of.in, of.weights, of.grad_weights, none);
      expect_same(gates.vectors, through["vectors"], "vectors");
      expect_same(gates.hidden_states, through["hidden_states"], "hidden states");
      expect_same(gates.gate_weight, through["gate_weight"], "gate weight");
      expect_same(gates.gate_bias, through["gate_bias"], "gate bias");
    }
  }
}

// What a program answers against enclosures of its gradients; elements outside.
std::int64_t outside_of(const Backward& of, const Style& style,
                        BackwardMistake mistake = BackwardMistake::none) {
  const auto held = held_gradients(of.in, of.weights, of.grad_pooled);
  const auto program = held_f32(of.in, of.weights, of.grad_pooled, style, mistake);
  std::int64_t count = outside(held.vectors, program.vectors) +
                       outside(held.pool_weights, program.pool_weights) +
                       outside(held.norm_weight, program.norm_weight);
  const auto m = static_cast<std::size_t>(of.in.index_kpool);
  const auto stride = of.in.per_channel() ? static_cast<std::size_t>(of.in.head_dim) : 1;
  if (of.in.per_channel() || std::holds_alternative<RoleMatrix>(of.in.weights)) {
    count += outside(through_softmax(of.weights, of.grad_weights, of.in.index_kpool,
                                     static_cast<std::int64_t>(stride)),
                     softmax_backward_f32(of.weights, of.grad_weights, m, stride, style, mistake));
  }
  if (std::holds_alternative<GateOperands>(of.in.weights)) {
    const auto gates = through_gates(of.in, of.weights, of.grad_weights, of.held);
    const auto answers =
        GateBackwardF32(of.in, of.weights, of.grad_weights, style, mistake).run(of.held);
    count += outside(gates.vectors, answers.vectors);
    count += outside(gates.hidden_states, answers.hidden_states);
    count += outside(gates.gate_weight, answers.gate_weight);
    count += outside(gates.gate_bias, answers.gate_bias);
  }
  return count;
}

RC_GTEST_PROP(PolicyBackward, ContainsEveryBinary32Program, ()) {
  for (const std::string& policy : learnable()) {
    const Backward of = backward_of(any_draw(policy));
    for (const Style& style : styles(*rc::gen::arbitrary<std::uint64_t>())) {
      RC_LOG(policy + ", " + style.name);
      RC_ASSERT(outside_of(of, style) == 0);
    }
  }
}

RC_GTEST_PROP(PolicyBackward, SumsOfRowsContainEveryOrder, ()) {
  const auto rows = *rc::gen::inRange<std::size_t>(0, 70);
  const auto width = *rc::gen::inRange<std::size_t>(1, 6);
  const auto sums = *rc::gen::inRange<std::int32_t>(1, 5);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto values = numbers(rows * width, 1e3, seed);
  std::vector<std::int32_t> of(rows);
  for (auto& s : of) s = *rc::gen::inRange<std::int32_t>(0, sums);
  const Bounded expected = row_sums(values, static_cast<std::int64_t>(width), of, sums);
  for (const Style& style : styles(seed)) {
    std::vector<float> found;
    for (std::int32_t s = 0; s < sums; ++s) {
      for (std::size_t c = 0; c < width; ++c) {
        std::vector<float> column;
        for (std::size_t j = 0; j < rows; ++j)
          if (of[j] == s) column.push_back(values[j * width + c]);
        found.push_back(sum_f32(column, style));
      }
    }
    RC_ASSERT(outside(expected, found) == 0);
  }
}

RC_GTEST_PROP(PolicyBackward, Binary128LiesInside, ()) {
  const auto policies = learnable();
  const auto policy = *rc::gen::elementOf(policies);
  auto draw = any_draw(policy);
  draw.groups = std::min<std::int64_t>(draw.groups, 2);
  draw.dim = 16;
  const Backward of = backward_of(draw);
  const auto wide = held_gradients(of.in, of.weights, of.grad_pooled, Precision::binary128);
  const auto held = held_gradients(of.in, of.weights, of.grad_pooled);
  const auto inside = [](const Bounded& bounds, const Bounded& values) {
    for (std::size_t k = 0; k < bounds.value.size(); ++k)
      RC_ASSERT(admits(bounds.low[k], bounds.high[k], values.value[k]));
  };
  inside(held.vectors, wide.vectors);
  inside(held.pool_weights, wide.pool_weights);
  inside(held.norm_weight, wide.norm_weight);
}

TEST(PolicyBackward, ExcludesWrongPrograms) {
  const std::pair<const char*, BackwardMistake> planted[] = {
      {"additive", BackwardMistake::division_forgotten},
      {"gated", BackwardMistake::division_forgotten},
      {"tfidf", BackwardMistake::mean_not_subtracted},
      {"gated", BackwardMistake::mean_not_subtracted},
      {"gated", BackwardMistake::slope_of_exponential},
      {"additive", BackwardMistake::neighbours_slot},
      {"composite", BackwardMistake::neighbours_slot},
      {"kpool_weights", BackwardMistake::neighbours_slot},
      {"composite", BackwardMistake::mean_not_subtracted},
      {"kpool_weights", BackwardMistake::mean_not_subtracted},
      {"csa", BackwardMistake::norm_held_fixed},
      {"csa", BackwardMistake::rotated_forward},
      {"csa", BackwardMistake::narrow_sums},
      {"additive", BackwardMistake::narrow_sums}};
  for (const auto& [policy, mistake] : planted) {
    PolicyDraw draw;
    draw.policy = policy;
    draw.mode = "bf16";
    const Backward of = backward_of(draw);
    for (const Style& style : styles(1)) {
      EXPECT_GT(outside_of(of, style, mistake), 0)
          << policy << ", " << style.name << ", mistake " << static_cast<int>(mistake);
      EXPECT_EQ(outside_of(of, style), 0) << policy << ", " << style.name;
    }
  }
}

TEST(PolicyBackward, TheMeansGradientsAreSharesAndItsWeightsHaveNone) {
  PolicyDraw draw;
  draw.policy = "gated";
  draw.absent = false;
  Backward of = backward_of(draw);
  for (float& w : of.weights) w = 0x1p-140F;
  const auto held = held_gradients(of.in, of.weights, of.grad_pooled);
  for (std::size_t k = 0; k < held.vectors.value.size(); ++k) {
    const std::size_t c = k % 32, g = k / 32 / 4;
    EXPECT_DOUBLE_EQ(held.vectors.value[k], of.grad_pooled[g * 32 + c] / 4.0);
  }
  for (const double x : held.pool_weights.high) EXPECT_EQ(x, 0);
}

TEST(PolicyBackward, WhatDoesNotFitIsRefusedByName) {
  const Backward of = backward_of({});
  EXPECT_THROW(held_gradients(of.in, of.weights, {}), ConfigError);
  EXPECT_THROW(held_gradients(of.in, {}, of.grad_pooled), ConfigError);
  auto bad = of.grad_pooled;
  bad[3] = NAN;
  EXPECT_THROW(held_gradients(of.in, of.weights, bad), ConfigError);
  EXPECT_THROW(through_gates(of.in, of.weights, of.grad_weights, of.held), ConfigError);
}

}  // namespace
}  // namespace indexpool::reference
