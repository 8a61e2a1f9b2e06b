// Linear attention as a binary32 implementation would compute it, token by token and in chunks,
// with variations that are right and faults that are not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "indexpool/model/attention.hpp"

namespace indexpool::reference {

enum class Order { forward, reverse, tree, fused };  // of sums; fused: forward, by fma
enum class Fault {
  none,
  decay_after_update,
  no_beta,
  no_scale,
  no_normalisation,
  state_at_seam,  // chunks: the state misses the last token's update
  decay_at_seam,  // chunks: the state decays one token too little
  include_next,   // chunks: outputs read their own token's update only from the next on
};

inline float sum_of(std::vector<float> x, Order order) {
  if (order == Order::reverse) std::reverse(x.begin(), x.end());
  if (order == Order::tree) {
    while (x.size() > 1) {
      std::vector<float> half;
      for (std::size_t i = 0; i + 1 < x.size(); i += 2) half.push_back(x[i] + x[i + 1]);
      if (x.size() % 2 == 1) half.push_back(x.back());
      x = half;
    }
  }
  float sum = 0;
  for (const float value : x) sum += value;
  return sum;
}
inline float dot_of(const float* x, const float* y, std::size_t n, Order order) {
  if (order == Order::fused) {
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum = std::fma(x[i], y[i], sum);
    return sum;
  }
  std::vector<float> products(n);
  for (std::size_t i = 0; i < n; ++i) products[i] = x[i] * y[i];
  return sum_of(products, order);
}

struct F32Linear {
  std::vector<float> outputs;  // [T, H, V]
  std::vector<float> state;    // [H, K, V]
};

// One head's rows as floats.
class F32Head {
 public:
  F32Head(const LinearAttentionInputs& in, std::int64_t head, Order order, Fault fault)
      : keys(static_cast<std::size_t>(in.keys.dim(2))),
        values(static_cast<std::size_t>(in.values.dim(2))),
        order_(order) {
    const auto heads = in.keys.dim(1);
    for (std::int64_t t = 0; t < in.keys.dim(0); ++t) {
      q.push_back(row(in.queries, t * heads + head, keys));
      k.push_back(row(in.keys, t * heads + head, keys));
      v.push_back(row(in.values, t * heads + head, values));
      log_decay.push_back(row(in.log_decay, t * heads + head, keys));
      beta.push_back(fault == Fault::no_beta ? 1
                                             : static_cast<float>(in.beta.at(t * heads + head)));
      if (fault == Fault::no_normalisation) continue;
      normalise(q.back(), in.eps);
      normalise(k.back(), in.eps);
    }
  }
  std::vector<std::vector<float>> q, k, v, log_decay;
  std::vector<float> beta;
  std::size_t keys, values;

 private:
  static std::vector<float> row(const Tensor& tensor, std::int64_t index, std::size_t width) {
    std::vector<float> result;
    for (std::size_t c = 0; c < width; ++c)
      result.push_back(static_cast<float>(
          tensor.at(index * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(c))));
    return result;
  }
  void normalise(std::vector<float>& x, float eps) const {
    const float norm = std::sqrt(dot_of(x.data(), x.data(), x.size(), order_) + eps);
    for (float& value : x) value = order_ == Order::forward ? value / norm : value * (1 / norm);
  }
  Order order_;
};

inline std::vector<float> state_of_head(const LinearAttentionInputs& in, std::int64_t head) {
  const std::int64_t size = in.state.dim(1) * in.state.dim(2);
  std::vector<float> state;
  for (std::int64_t i = 0; i < size; ++i)
    state.push_back(static_cast<float>(in.state.at(head * size + i)));
  return state;
}

// --- token by token ---

inline void f32_step(const F32Head& head, std::size_t t, std::vector<float>& state, Order order,
                     Fault fault, float scale, std::vector<float>& outputs) {
  const std::size_t K = head.keys, V = head.values;
  for (std::size_t j = 0; j < V; ++j) {
    std::vector<float> s(K);
    for (std::size_t c = 0; c < K; ++c) {
      s[c] = state[c * V + j];
      if (fault != Fault::decay_after_update) s[c] *= std::exp(head.log_decay[t][c]);
    }
    const float u = head.beta[t] * (head.v[t][j] - dot_of(head.k[t].data(), s.data(), K, order));
    for (std::size_t c = 0; c < K; ++c) {
      s[c] = order == Order::fused ? std::fma(head.k[t][c], u, s[c]) : s[c] + head.k[t][c] * u;
      if (fault == Fault::decay_after_update) s[c] *= std::exp(head.log_decay[t][c]);
      state[c * V + j] = s[c];
    }
    outputs.push_back(scale * dot_of(head.q[t].data(), s.data(), K, order));
  }
}

// --- in chunks: forward substitution, or by an explicit inverse ---

class F32Chunk {
 public:
  F32Chunk(const F32Head& head, std::size_t first, std::size_t count, Order order)
      : head_(head), first_(first), n_(count), order_(order), sums_(count + 1) {
    sums_[0].assign(head.keys, 0.0f);
    for (std::size_t i = 0; i < n_; ++i) {
      sums_[i + 1] = sums_[i];
      for (std::size_t c = 0; c < head.keys; ++c) sums_[i + 1][c] += head.log_decay[first + i][c];
    }
  }
  // x_c exp(G_i - G_j), then a dot product.
  std::vector<float> decayed(const std::vector<float>& x, std::size_t i, std::size_t j) const {
    std::vector<float> result(x.size());
    for (std::size_t c = 0; c < x.size(); ++c)
      result[c] = x[c] * std::exp(sums_[i][c] - sums_[j][c]);
    return result;
  }
  float product(const std::vector<float>& x, std::size_t i, std::size_t j) const {
    const auto left = decayed(x, i + 1, j + 1);
    return dot_of(left.data(), head_.k[first_ + j].data(), left.size(), order_);
  }
  std::vector<float> updates(const std::vector<float>& state, std::size_t j) const {
    std::vector<float> u;
    for (std::size_t i = 0; i < n_; ++i) {
      const auto k = decayed(head_.k[first_ + i], i + 1, 0);
      float rest =
          head_.v[first_ + i][j] - dot_of(k.data(), column(state, j).data(), k.size(), order_);
      rest *= head_.beta[first_ + i];
      u.push_back(rest);
    }
    return order_ == Order::tree ? multiplied(u) : substituted(u);
  }
  std::vector<float> column(const std::vector<float>& state, std::size_t j) const {
    std::vector<float> s(head_.keys);
    for (std::size_t c = 0; c < s.size(); ++c) s[c] = state[c * head_.values + j];
    return s;
  }
  float a(std::size_t i, std::size_t j) const {
    return head_.beta[first_ + i] * product(head_.k[first_ + i], i, j);
  }
  void prepare() {
    lower_.assign(n_, std::vector<float>(n_));
    reads_ = lower_;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        if (j < i) lower_[i][j] = a(i, j);
        reads_[i][j] = product(head_.q[first_ + i], i, j);
      }
    }
  }
  float read(std::size_t i, std::size_t j) const { return reads_[i][j]; }

 private:
  std::vector<float> substituted(std::vector<float> u) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < i; ++j) u[i] -= lower_[i][j] * u[j];
    }
    return u;
  }
  std::vector<float> multiplied(const std::vector<float>& b) const {
    std::vector<std::vector<float>> inverse(n_, std::vector<float>(n_));
    for (std::size_t i = 0; i < n_; ++i) {
      inverse[i][i] = 1;
      for (std::size_t j = 0; j < i; ++j) {
        for (std::size_t c = 0; c < n_; ++c) inverse[i][c] -= lower_[i][j] * inverse[j][c];
      }
    }
    std::vector<float> u;
    for (std::size_t i = 0; i < n_; ++i)
      u.push_back(dot_of(inverse[i].data(), b.data(), n_, order_));
    return u;
  }

  const F32Head& head_;
  std::size_t first_, n_;
  Order order_;
  std::vector<std::vector<float>> sums_, lower_, reads_;
};

inline void f32_chunk(const F32Head& head, std::size_t first, std::size_t n,
                      std::vector<float>& state, Order order, Fault fault, float scale,
                      float* outputs, std::size_t stride) {
  F32Chunk chunk(head, first, n, order);
  chunk.prepare();
  for (std::size_t j = 0; j < head.values; ++j) {
    const auto s = chunk.column(state, j);
    const auto u = chunk.updates(state, j);
    for (std::size_t i = 0; i < n; ++i) {
      const auto q = chunk.decayed(head.q[first + i], i + 1, 0);
      float sum = dot_of(q.data(), s.data(), s.size(), order);
      const std::size_t own = fault == Fault::include_next ? i : i + 1;
      for (std::size_t m = 0; m < own; ++m) sum += chunk.read(i, m) * u[m];
      outputs[i * stride + j] = scale * sum;
    }
    const std::size_t written = fault == Fault::state_at_seam ? n - 1 : n;
    const auto kept = chunk.decayed(s, fault == Fault::decay_at_seam ? n - 1 : n, 0);
    for (std::size_t c = 0; c < head.keys; ++c) {
      float sum = kept[c];
      for (std::size_t m = 0; m < written; ++m)
        sum += chunk.decayed(head.k[first + m], n, m + 1)[c] * u[m];
      state[c * head.values + j] = sum;
    }
  }
}

// chunk 0: token by token.
inline F32Linear f32_linear(const LinearAttentionInputs& in, std::int64_t chunk,
                            Order order = Order::forward, Fault fault = Fault::none) {
  const auto tokens = static_cast<std::size_t>(in.keys.dim(0));
  const auto heads = static_cast<std::size_t>(in.keys.dim(1));
  const float scale = fault == Fault::no_scale ? 1 : in.scale;
  F32Linear result;
  result.outputs.resize(static_cast<std::size_t>(in.values.size()));
  for (std::size_t h = 0; h < heads; ++h) {
    const F32Head head(in, static_cast<std::int64_t>(h), order, fault);
    auto state = state_of_head(in, static_cast<std::int64_t>(h));
    const auto step = static_cast<std::size_t>(chunk);
    for (std::size_t t = 0; t < tokens; t += std::max<std::size_t>(step, 1)) {
      float* const at = result.outputs.data() + (t * heads + h) * head.values;
      if (chunk > 0) {
        f32_chunk(head, t, std::min(step, tokens - t), state, order, fault, scale, at,
                  heads * head.values);
        continue;
      }
      std::vector<float> row;
      f32_step(head, t, state, order, fault, scale, row);
      std::copy(row.begin(), row.end(), at);
    }
    result.state.insert(result.state.end(), state.begin(), state.end());
  }
  return result;
}

// --- inputs ---

struct LinearDraw {
  std::int64_t tokens = 64, heads = 1, keys = 8, values = 4;
  DType storage = DType::bf16;
  double decay = 0.1;  // log_decay is minus an exponential variate of this mean, at most 5
  double key_scale = 1;
  bool same_keys = false;  // the hardest for the triangular system
  std::uint64_t seed = 1;
};
inline LinearAttentionInputs random_linear(const LinearDraw& draw) {
  std::mt19937_64 random(draw.seed);
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> steep;
  std::uniform_real_distribution<double> uniform;
  LinearAttentionInputs in;
  const Shape keys{draw.tokens, draw.heads, draw.keys};
  in.queries = Tensor(draw.storage, keys);
  in.keys = Tensor(draw.storage, keys);
  in.values = Tensor(draw.storage, {draw.tokens, draw.heads, draw.values});
  in.log_decay = Tensor(DType::f32, keys);
  in.beta = Tensor(DType::f32, {draw.tokens, draw.heads});
  in.state = Tensor(DType::f32, {draw.heads, draw.keys, draw.values});
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(draw.keys)));
  for (std::int64_t i = 0; i < in.queries.size(); ++i) {
    in.queries.set(i, normal(random));
    in.keys.set(i, draw.same_keys ? 1.0 : draw.key_scale * normal(random));
    in.log_decay.set(i, std::max(-5.0, -draw.decay * steep(random)));
  }
  for (std::int64_t i = 0; i < in.values.size(); ++i) in.values.set(i, normal(random));
  for (std::int64_t i = 0; i < in.beta.size(); ++i) in.beta.set(i, uniform(random));
  for (std::int64_t i = 0; i < in.state.size(); ++i) in.state.set(i, normal(random));
  return in;
}

}  // namespace indexpool::reference
