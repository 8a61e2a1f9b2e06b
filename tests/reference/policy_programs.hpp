// Straightforward binary32 programs of the published forms, as kernels write them: in several
// orders, with several exponentials and quotients; and the same with planted mistakes.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/pooling.hpp"

#include "f32_pool.hpp"

namespace indexpool::reference {

enum class Mistake {
  none,
  denominator_drops_one,
  beta_and_gamma_swapped,
  cosine_without_norm,
  absent_counted,
  narrow_accumulator,
  binary_logarithm,
  rope_sign,
  no_eps,
  mean_instead
};

struct Style {
  std::string name;
  int order = 0;  // 0 forward, 1 reverse, 2 tree, 3 any
  bool fused = false, reciprocal = false, tensor_cores = false, divide_first = false;
  int cosine = 0;  // 0 two roots, 1 a root of the product, 2 reciprocal roots off by an ulp
  Exponential exponential = [](float x) { return std::exp(x); };
  std::uint64_t seed = 1;
};

inline std::vector<Style> styles(std::uint64_t seed) {
  const Exponential base2 = [](float x) { return std::exp2(x * 1.44269504F); };
  std::vector<Style> result(5);
  result[0] = {"forward", 0, false, false, false, false, 0};
  result[1] = {"reverse, fma, reciprocals", 1, true, true, true, false, 1};
  result[2] = {"tree, exp2f", 2, false, false, true, true, 2};
  result[2].exponential = base2;
  result[3] = {"any order, exp off by 2 ulp and flushed", 3, true, true, false, true, 2};
  result[3].exponential = sloppy(seed);
  result[4] = {"forward, fma", 0, true, false, false, false, 1};
  for (Style& style : result) style.seed = seed;
  return result;
}

inline float narrow(float x, Mistake mistake) {
  return mistake == Mistake::narrow_accumulator ? rounded_bf16(x) : x;
}

// sum x y in the style's order; y may be ones.
inline float dot_f32(std::span<const float> x, std::span<const float> y, const Style& style,
                     float start = 0, Mistake mistake = Mistake::none) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (style.order == 1) std::ranges::reverse(order);
  if (style.order == 3) std::ranges::shuffle(order, std::mt19937_64(style.seed));
  if (style.order == 2) {
    std::vector<float> sums(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) sums[i] = x[i] * y[i];
    for (std::size_t stride = 1; stride < sums.size(); stride *= 2) {
      for (std::size_t i = 0; i + stride < sums.size(); i += 2 * stride) {
        sums[i] = narrow(sums[i] + sums[i + stride], mistake);
      }
    }
    return sums.empty() ? start : start + sums[0];
  }
  float sum = start;
  for (const std::size_t i : order) {
    sum = narrow(style.fused ? std::fma(x[i], y[i], sum) : sum + x[i] * y[i], mistake);
  }
  return sum;
}

inline float sum_f32(std::span<const float> x, const Style& style) {
  return dot_f32(x, std::vector<float>(x.size(), 1.0F), style);
}

inline float quotient(float top, float bottom, const Style& style) {
  return style.reciprocal ? top * (1 / bottom) : top / bottom;
}

// 16 products at a time, cut 25 bits below the largest, the result truncated to binary32.
inline float tensor_core_dot(std::span<const float> x, std::span<const float> y) {
  const auto cut = [](double value, int exponent, int bits) {
    return std::ldexp(std::trunc(std::ldexp(value, bits - exponent)), exponent - bits);
  };
  double sum = 0;
  for (std::size_t first = 0; first < x.size(); first += 16) {
    std::vector<double> addends = {sum};
    double largest = std::abs(sum);
    for (std::size_t i = first; i < std::min(first + 16, x.size()); ++i) {
      addends.push_back(static_cast<double>(x[i]) * static_cast<double>(y[i]));
      largest = std::max(largest, std::abs(addends.back()));
    }
    if (largest == 0) continue;
    sum = 0;
    for (const double a : addends) sum += cut(a, std::ilogb(largest), 25);
    if (sum != 0) sum = cut(sum, std::ilogb(sum), 23);
  }
  return static_cast<float>(sum);
}

inline std::vector<float> floats(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  std::vector<float> result;
  for (std::int64_t i = first; i < first + count; ++i) {
    result.push_back(static_cast<float>(tensor.at(i)));
  }
  return result;
}
inline std::vector<float> vector_of(const PoolingInputs& in, std::int64_t group, std::int64_t i,
                                    const Tensor& rows) {
  const auto row = in.groups[static_cast<std::size_t>(group)].first_row +
                   in.offsets[static_cast<std::size_t>(i)];
  return floats(rows, row * in.head_dim, in.head_dim);
}

inline float cosine_f32(std::span<const float> q, std::span<const float> v, const Style& style,
                        Mistake mistake) {
  const float qq = dot_f32(q, q, style, 0, mistake), vv = dot_f32(v, v, style, 0, mistake);
  const float qv = dot_f32(q, v, style, 0, mistake);
  if (qq == 0 || vv == 0) return 0;
  if (mistake == Mistake::cosine_without_norm) return qv;
  if (style.cosine == 0) return quotient(qv, std::sqrt(qq) * std::sqrt(vv), style);
  if (style.cosine == 1) return quotient(qv, std::sqrt(qq * vv), style);
  const auto off = [](float x) { return std::nextafter(1 / std::sqrt(x), HUGE_VALF); };
  return qv * off(qq) * off(vv);
}

inline float three_terms(float a, float b, float c, const Style& style) {
  return style.order == 0 ? (a + b) + c : a + (b + c);
}

struct WeightProgram {
  const PoolingInputs& in;
  const Style& style;
  Mistake mistake = Mistake::none;
  std::int64_t set = 0;

  std::int64_t absent() const {
    const auto& group = in.groups[static_cast<std::size_t>(set)];
    return mistake == Mistake::absent_counted ? 0 : group.absent;
  }
  std::vector<float> zeros() const {
    return std::vector<float>(static_cast<std::size_t>(in.index_kpool));
  }
  std::vector<float> softmax_f32(std::span<const float> z) const {
    std::vector<float> w;
    for (const float x : z) w.push_back(style.exponential(x - maximum(z)));
    const float total = sum_f32(
        std::span(w).first(mistake == Mistake::denominator_drops_one ? w.size() - 1 : w.size()),
        style);
    for (float& x : w) x = quotient(x, total, style);
    return w;
  }

  std::vector<float> operator()(const GivenWeights& w) const {
    return floats(w.pool_weights, set * in.index_kpool, in.index_kpool);
  }
  std::vector<float> operator()(const RoleMatrix& w) const {
    return softmax_f32(floats(w.pool_matrix, set * in.index_kpool, in.index_kpool));
  }
  std::vector<float> operator()(const AdditiveTerms& w) const {
    auto result = zeros();
    const auto q = floats(w.queries, set * in.head_dim, in.head_dim);
    float beta = w.beta, gamma_share = w.gamma;
    if (mistake == Mistake::beta_and_gamma_swapped) std::swap(beta, gamma_share);
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const std::int64_t at = set * in.index_kpool + i;
      const float d = quotient(static_cast<float>(w.distances.at(at)), w.sigma, style);
      const float age = quotient(static_cast<float>(w.ages.at(at)), w.tau, style);
      const float cosine = cosine_f32(q, vector_of(in, set, i, in.vectors), style, mistake);
      const float content = w.raw_cosine  ? cosine
                            : style.fused ? std::fma(cosine, 0.5F, 0.5F)
                                          : (1 + cosine) * 0.5F;
      result[static_cast<std::size_t>(i)] =
          three_terms(w.alpha * style.exponential(-0.5F * d * d), beta * content,
                      gamma_share * style.exponential(-age), style);
    }
    return result;
  }
  std::vector<float> operator()(const GateOperands& w) const {
    auto result = zeros();
    const std::int64_t head = set % in.heads, hidden = w.hidden_states.dim(1);
    const std::int64_t row = head * (hidden + in.head_dim);
    const auto h = floats(w.hidden_states, set / in.heads * hidden, hidden);
    const auto of_hidden = floats(w.gate_weight, row, hidden);
    const auto of_vector = floats(w.gate_weight, row + hidden, in.head_dim);
    const bool narrow_storage = in.mode.storage != DType::f32;
    const float gate = style.tensor_cores && narrow_storage
                           ? tensor_core_dot(h, of_hidden)
                           : dot_f32(h, of_hidden, style, 0, mistake);
    const auto bias = static_cast<float>(w.gate_bias.at(head));
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const auto v = vector_of(in, set, i, in.vectors);
      const float x = style.fused ? dot_f32(v, of_vector, style, gate + bias)
                                  : three_terms(gate, dot_f32(v, of_vector, style), bias, style);
      result[static_cast<std::size_t>(i)] = quotient(1, 1 + style.exponential(-x), style);
    }
    return result;
  }
  std::vector<float> operator()(const AccessTerms& w) const {
    auto result = zeros();
    const auto q = floats(w.queries, set * in.head_dim, in.head_dim);
    const auto accesses = floats(w.accesses, set * in.index_kpool, in.index_kpool);
    const float total =
        sum_f32(std::span(accesses).subspan(static_cast<std::size_t>(absent())), style);
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float cosine = cosine_f32(q, vector_of(in, set, i, in.vectors), style, mistake);
      const float tf = total == 0 ? 0 : quotient(accesses[at], total, style);
      const float term = w.mix[0] * (tf * idf(w, set * in.index_kpool + i));
      result[at] = three_terms(term, w.mix[1] * static_cast<float>(w.position_terms.at(i)),
                               w.mix[2] * ((1 + cosine) * 0.5F), style);
    }
    return result;
  }
  float idf(const AccessTerms& w, std::int64_t at) const {
    const float top = 1 + static_cast<float>(w.all_groups);
    const float bottom = 1 + static_cast<float>(w.groups_accessed.at(at));
    if (mistake == Mistake::binary_logarithm) return std::log2(top / bottom) + 1;
    if (style.order == 1) return std::log(top) - std::log(bottom) + 1;
    return std::log(quotient(top, bottom, style)) + 1;
  }
  std::vector<float> operator()(const ChannelScores& w) const {
    std::vector<float> result(static_cast<std::size_t>(in.index_kpool * in.head_dim));
    for (std::int64_t c = 0; c < in.head_dim; ++c) {
      std::vector<float> z;
      for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
        z.push_back(vector_of(in, set, i, w.gate_scores)[static_cast<std::size_t>(c)] +
                    static_cast<float>(w.position_bias.at(i * in.head_dim + c)));
      }
      const auto p = softmax_f32(z);
      for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
        result[static_cast<std::size_t>(i * in.head_dim + c)] =
            p[static_cast<std::size_t>(i - absent())];
      }
    }
    return result;
  }
  std::vector<float> operator()(const NoWeights&) const { return {}; }
};

// Pool weights of all sets.
inline std::vector<float> weights_f32(const PoolingInputs& in, const Style& style,
                                      Mistake mistake = Mistake::none) {
  std::vector<float> result;
  for (std::int64_t set = 0; set < weight_sets(in); ++set) {
    const auto row = std::visit(WeightProgram{in, style, mistake, set}, in.weights);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

inline void norm_and_rotate_f32(std::vector<float>& x, const NormRope& norm, std::int64_t group,
                                const Style& style, Mistake mistake) {
  const auto d = static_cast<float>(x.size());
  const float eps = mistake == Mistake::no_eps ? 0 : norm.eps;
  const float square = quotient(dot_f32(x, x, style), d, style) + eps;
  for (std::size_t c = 0; c < x.size(); ++c) {
    const auto w = static_cast<float>(norm.norm_weight.at(static_cast<std::int64_t>(c)));
    x[c] = style.reciprocal ? x[c] * (1 / std::sqrt(square)) * w : x[c] / std::sqrt(square) * w;
  }
  const std::size_t first = x.size() - static_cast<std::size_t>(norm.rope_dims);
  for (std::int64_t i = 0; i < norm.rope_dims; i += 2) {
    const auto cosine = static_cast<float>(norm.rope.at(group * norm.rope_dims + i));
    auto sine = static_cast<float>(norm.rope.at(group * norm.rope_dims + i + 1));
    if (mistake == Mistake::rope_sign) sine = -sine;
    float& a = x[first + static_cast<std::size_t>(i)];
    float& b = x[first + static_cast<std::size_t>(i) + 1];
    const float before = a;
    a = style.fused ? std::fma(a, cosine, -(b * sine)) : a * cosine - b * sine;
    b = style.fused ? std::fma(before, sine, b * cosine) : before * sine + b * cosine;
  }
}

// One channel of one group from its present vectors.
inline float pooled_f32(std::span<const float> w, std::span<const float> v, bool divide,
                        const Style& style, Mistake mistake) {
  const std::size_t n = w.size();
  const auto mean = [&] { return quotient(sum_f32(v, style), static_cast<float>(n), style); };
  if (mistake == Mistake::mean_instead) return mean();
  if (!divide) return dot_f32(w, v, style, 0, mistake);
  const bool drops = mistake == Mistake::denominator_drops_one;
  const float total = sum_f32(w.first(drops ? n - 1 : n), style);
  if (std::abs(total) < 0x1p-126F) return mean();
  if (!style.divide_first) return quotient(dot_f32(w, v, style, 0, mistake), total, style);
  std::vector<float> p;
  for (const float x : w) p.push_back(quotient(x, total, style));
  return dot_f32(p, v, style, 0, mistake);
}

// [G, D] before any rounding to storage.
inline std::vector<float> pool_f32(const PoolingInputs& in, std::span<const float> stored,
                                   const Style& style, Mistake mistake = Mistake::none) {
  const bool divide = find_policy(in.policy).normalisation == Normalisation::division;
  const std::int64_t dim = in.head_dim, m = in.index_kpool;
  std::vector<float> result;
  for (std::int64_t g = 0; g < in.group_count(); ++g) {
    const VectorGroup& group = in.groups[static_cast<std::size_t>(g)];
    std::vector<float> pooled;
    std::vector<std::vector<float>> vectors;
    const std::int64_t first = mistake == Mistake::absent_counted ? 0 : group.absent;
    for (std::int64_t i = first; i < m; ++i) {
      vectors.push_back(vector_of(in, g, i, in.vectors));
    }
    for (std::int64_t c = 0; c < dim; ++c) {
      std::vector<float> w, v;
      for (std::int64_t i = first; i < m; ++i) {
        const std::int64_t at = in.per_channel() ? (g * m + i) * dim + c : group.weight_set * m + i;
        w.push_back(stored[static_cast<std::size_t>(at)]);
        v.push_back(vectors[static_cast<std::size_t>(i - first)][static_cast<std::size_t>(c)]);
      }
      pooled.push_back(pooled_f32(w, v, divide, style, mistake));
    }
    if (!in.norm_rope.norm_weight.empty()) {
      norm_and_rotate_f32(pooled, in.norm_rope, g, style, mistake);
    }
    result.insert(result.end(), pooled.begin(), pooled.end());
  }
  return result;
}

}  // namespace indexpool::reference
