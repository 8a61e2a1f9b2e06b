// Projections: binary32 programs inside their enclosures, mistakes outside.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"

#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

constexpr std::int64_t hidden_size = 24, q_lora_rank = 16;

// Two rows of 5 columns; the first has padding on the left, the second on the right.
Case random_case(const NumericMode& mode, std::uint64_t seed, double mean) {
  Draw draw;
  draw.seed = seed;
  draw.dim = 16;
  draw.lengths = {4, 3};
  Case c;
  c.inputs = random_inputs(draw, mode);
  c.inputs.sequences[0].first_key = 1;
  c.batch = 2;
  c.padded_length = 5;
  std::mt19937_64 random(seed + 1);
  const auto tensor = [&](Shape shape, double scale) {
    Tensor result(mode.storage, std::move(shape));
    fill_normal(result, scale, random);
    return result;
  };
  auto& p = c.projections;
  p.hidden_states = tensor({2, 5, hidden_size}, 1);
  p.q_resid = tensor({2, 5, q_lora_rank}, 1);
  p.wq_b = tensor({draw.heads * draw.dim, q_lora_rank}, 0.2);
  p.wk = tensor({draw.dim, hidden_size}, 0.2);
  p.k_norm_weight = tensor({draw.dim}, 1);
  p.k_norm_bias = tensor({draw.dim}, 0.5);
  p.weights_proj = tensor({draw.heads, hidden_size}, 0.2);
  p.gate_weight = tensor({draw.dim, hidden_size}, 0.2);
  // A common column moves the keys' mean away from zero: statistics lose digits.
  for (std::int64_t c0 = 0; c0 < draw.dim; ++c0) p.wk.set(c0 * hidden_size, mean);
  return c;
}

using Row = std::vector<float>;

Row row_of(const Tensor& tensor, std::int64_t row) {
  const auto width = tensor.shape().back();
  Row result;
  for (std::int64_t i = 0; i < width; ++i) {
    result.push_back(static_cast<float>(tensor.at(row * width + i)));
  }
  return result;
}

float stored(float x, DType dtype) {
  return static_cast<float>(round_to(dtype, static_cast<double>(x)));
}

// One row times a matrix, added up forwards, backwards with fma, or in four strided sums.
Row product(const Row& x, const Tensor& w, int order, DType dtype) {
  Row result;
  for (std::int64_t r = 0; r < w.dim(0); ++r) {
    const Row weight = row_of(w, r);
    float sum = 0;
    if (order == 0) {
      for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * weight[i];
    } else if (order == 1) {
      for (std::size_t i = x.size(); i-- > 0;) sum = std::fma(x[i], weight[i], sum);
    } else {
      float part[4] = {};
      for (std::size_t i = 0; i < x.size(); ++i) part[i % 4] += x[i] * weight[i];
      sum = (part[0] + part[2]) + (part[1] + part[3]);
    }
    result.push_back(stored(sum, dtype));
  }
  return result;
}

struct Moments {
  float mean = 0, variance = 0;
};
Moments two_passes(const Row& y) {
  Moments m;
  for (const float v : y) m.mean += v;
  m.mean /= static_cast<float>(y.size());
  for (const float v : y) m.variance += (v - m.mean) * (v - m.mean);
  m.variance /= static_cast<float>(y.size());
  return m;
}
Moments updating(const Row& y) {
  Moments m;
  float count = 0;
  for (const float v : y) {
    count += 1;
    const float delta = v - m.mean;
    m.mean += delta / count;
    m.variance += delta * (v - m.mean);
  }
  m.variance /= count;
  return m;
}

Row layer_norm(const Row& y, const ProjectionInputs& p, bool update, bool folded, DType dtype) {
  const auto moments = update ? updating(y) : two_passes(y);
  const float r = 1 / std::sqrt(moments.variance + static_cast<float>(p.k_norm_eps));
  Row result;
  for (std::size_t c = 0; c < y.size(); ++c) {
    const auto at = static_cast<std::int64_t>(c);
    const auto w = static_cast<float>(p.k_norm_weight.at(at));
    const auto b = static_cast<float>(p.k_norm_bias.at(at));
    const float normal = folded ? y[c] * r - moments.mean * r : (y[c] - moments.mean) * r;
    result.push_back(stored(normal * w + b, dtype));
  }
  return result;
}

bool inside(const Bounded& bounds, std::int64_t row, const Row& answer) {
  for (std::size_t c = 0; c < answer.size(); ++c) {
    const std::size_t at = static_cast<std::size_t>(row) * answer.size() + c;
    const auto x = static_cast<double>(answer[c]);
    if (!(x >= bounds.low[at] && x <= bounds.high[at])) return false;
  }
  return true;
}

// Calls visit(row among the real tokens, row of the padded tensors).
void for_each_token(const Case& c, const std::function<void(std::int64_t, std::int64_t)>& visit) {
  std::int64_t row = 0;
  for (std::size_t b = 0; b < c.inputs.sequences.size(); ++b) {
    const auto& s = c.inputs.sequences[b];
    for (std::int64_t i = 0; i < s.length; ++i, ++row) {
      visit(row, static_cast<std::int64_t>(b) * c.padded_length + s.first_key + i);
    }
  }
}

RC_GTEST_PROP(ProjectEnclosure, ContainsBinary32Programs, (std::uint64_t seed)) {
  const auto mode =
      numeric_mode(*rc::gen::element<std::string>("hf_f32", "hf_bf16", "hf_f16", "vllm_fp8"));
  const auto order = *rc::gen::inRange(0, 3);
  const bool update = *rc::gen::arbitrary<bool>(), folded = *rc::gen::arbitrary<bool>();
  const auto c = random_case(mode, seed, *rc::gen::element(0.0, 1.0, 10.0));
  const auto bounds = project(c);
  const auto& p = c.projections;
  for_each_token(c, [&](std::int64_t row, std::int64_t padded) {
    const Row hidden = row_of(p.hidden_states, padded), residual = row_of(p.q_resid, padded);
    RC_ASSERT(inside(bounds.queries, row, product(residual, p.wq_b, order, mode.storage)));
    RC_ASSERT(inside(bounds.gate_scores, row, product(hidden, p.gate_weight, order, mode.storage)));
    const Row y = product(hidden, p.wk, order, mode.storage);
    RC_ASSERT(inside(bounds.keys, row, layer_norm(y, p, update, folded, mode.storage)));
    const bool engine = mode.pool_rounding == PoolRounding::f32_accumulate;
    Row w = product(hidden, p.weights_proj, order, engine ? DType::f32 : mode.storage);
    for (float& x : w) x *= 1 / std::sqrt(2.0F);
    RC_ASSERT(inside(bounds.head_weights, row, w));
  });
}

TEST(ProjectEnclosure, ExcludesAnotherEpsilonAndAMissingMean) {
  auto c = random_case(numeric_mode("hf_f32"), 3, 1);
  // Small keys, where eps matters: mlx-lm and ik_llama.cpp took 1e-5 for 1e-6.
  for (std::int64_t i = 0; i < c.projections.wk.size(); ++i) {
    c.projections.wk.set(i, c.projections.wk.at(i) * 0.01);
  }
  const auto bounds = project(c);
  auto wrong = c.projections;
  wrong.k_norm_eps = 1e-5;
  for_each_token(c, [&](std::int64_t row, std::int64_t padded) {
    const Row hidden = row_of(wrong.hidden_states, padded);
    const Row y = product(hidden, wrong.wk, 0, DType::f32);
    EXPECT_TRUE(inside(bounds.keys, row, layer_norm(y, c.projections, false, false, DType::f32)));
    EXPECT_FALSE(inside(bounds.keys, row, layer_norm(y, wrong, false, false, DType::f32)));
    Row uncentred = y;
    for (float& v : uncentred) v /= std::sqrt(two_passes(y).variance);
    EXPECT_FALSE(inside(bounds.keys, row, uncentred));
  });
}

TEST(ProjectEnclosure, ExcludesABf16Accumulator) {
  const auto c = random_case(numeric_mode("hf_bf16"), 5, 0);
  const auto bounds = project(c);
  std::int64_t outside = 0;
  for_each_token(c, [&](std::int64_t row, std::int64_t padded) {
    const Row hidden = row_of(c.projections.hidden_states, padded);
    Row answer;
    for (std::int64_t r = 0; r < 16; ++r) {
      const Row weight = row_of(c.projections.gate_weight, r);
      float sum = 0;
      for (std::size_t i = 0; i < hidden.size(); ++i) {
        sum = stored(sum + hidden[i] * weight[i], DType::bf16);
      }
      answer.push_back(sum);
    }
    outside += !inside(bounds.gate_scores, row, answer);
  });
  EXPECT_GT(outside, 0);
}

TEST(ProjectEnclosure, OfHeadWeightsIsAsWideAsTheirTwoRoundings) {
  const auto bounds = project(random_case(numeric_mode("hf_bf16"), 9, 0)).head_weights;
  std::int64_t single = 0;
  for (std::size_t i = 0; i < bounds.value.size(); ++i) {
    const double width = bounds.high[i] - bounds.low[i], size = std::abs(bounds.value[i]);
    if (width > 0x1p-16 * size) continue;  // two products admissible before the constant
    ++single;
    EXPECT_GE(width, 4 * 0x1p-24 * size);
    EXPECT_LE(width, 5 * 0x1p-24 * size);
  }
  EXPECT_GT(single, 0);
}

TEST(Project, OfAConstantRowIsTheBias) {
  auto c = random_case(numeric_mode("hf_f32"), 7, 0);
  for (std::int64_t i = 0; i < c.projections.wk.size(); ++i) c.projections.wk.set(i, 0);
  const auto keys = project(c).keys;
  for (std::size_t i = 0; i < keys.value.size(); ++i) {
    EXPECT_EQ(keys.value[i], c.projections.k_norm_bias.at(static_cast<std::int64_t>(i % 16)));
  }
}

TEST(Project, NeedsHiddenStates) {
  Case c;
  c.inputs = random_inputs(Draw{}, numeric_mode("hf_f32"));
  EXPECT_THROW(project(c), ConfigError);
}

TEST(Project, AgreesInBinary128) {
  const auto c = random_case(numeric_mode("hf_bf16"), 11, 1);
  const auto a = project(c), b = project(c, Precision::binary128);
  EXPECT_EQ(a.queries.low, b.queries.low);
  EXPECT_EQ(a.keys.value, b.keys.value);
  EXPECT_EQ(a.keys.low, b.keys.low);
  EXPECT_EQ(a.keys.high, b.keys.high);
  EXPECT_EQ(a.gate_scores.high, b.gate_scores.high);
}

}  // namespace
}  // namespace indexpool::reference
