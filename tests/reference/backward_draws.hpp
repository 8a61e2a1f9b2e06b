// Random operands of a backward pass, and the comparison of two references.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "indexpool/reference/policy.hpp"

#include "policy_inputs.hpp"

namespace indexpool::reference {

struct Backward {
  PoolingInputs in;
  std::vector<float> weights, grad_pooled, grad_weights, held;
};
inline std::vector<float> numbers(std::size_t n, double scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(normal(random));
  return values;
}
inline Backward backward_of(const PolicyDraw& draw) {
  Backward of;
  of.in = random_policy_inputs(draw);
  of.weights = stored(pool_weights(of.in));
  of.grad_pooled = numbers(static_cast<std::size_t>(draw.groups * draw.dim), 1, draw.seed ^ 0x51);
  of.grad_weights = numbers(of.weights.size(), 3, draw.seed ^ 0x52);
  of.held =
      numbers(static_cast<std::size_t>(draw.groups * draw.kpool * draw.dim), 1, draw.seed ^ 0x53);
  return of;
}
inline PolicyDraw any_draw(const std::string& policy) {
  PolicyDraw draw;
  draw.policy = policy;
  draw.seed = *rc::gen::arbitrary<std::uint64_t>();
  draw.mode = *rc::gen::element<std::string>("f32", "f16", "bf16");
  draw.groups = *rc::gen::inRange<std::int64_t>(0, 5);
  draw.kpool = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 8, 16);
  draw.dim = *rc::gen::element<std::int64_t>(16, 32);
  draw.heads = *rc::gen::element<std::int64_t>(1, 2, 3);
  draw.family = *rc::gen::element(Family::normal, Family::log_uniform, Family::tiny, Family::huge,
                                  Family::sparse, Family::equal);
  draw.extreme = *rc::gen::arbitrary<bool>();
  draw.weight_scale = *rc::gen::element(1.0, 1e-30, 1e20);
  return draw;
}

// Values of two references, apart by far less than what binary32 may be off.
inline void expect_same(const Bounded& bounds, const std::vector<double>& expected,
                        const char* what) {
  RC_ASSERT(bounds.value.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (is_open(bounds.low[k], bounds.high[k])) continue;
    RC_LOG(std::string(what) + " " + std::to_string(k));
    RC_ASSERT(std::abs(bounds.value[k] - expected[k]) <= 1e-6 * (bounds.high[k] - bounds.low[k]));
  }
}
inline std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}
// Sums over rows of `width`.
inline Bounded summed(const Bounded& rows, std::size_t width) {
  Bounded sums(Shape{static_cast<std::int64_t>(width)});
  for (std::size_t k = 0; k < rows.value.size(); ++k) {
    sums.value[k % width] += rows.value[k];
    sums.low[k % width] += rows.low[k];
    sums.high[k % width] += rows.high[k];
  }
  return sums;
}

}  // namespace indexpool::reference
