// Weights that are sums of terms, one of them the cosine of query and vector (additive, tfidf), or
// a sigmoid (gated), and their gradients. The stored weights are not computed again; the terms they
// are made of are. Internal to the layer.
#pragma once

#include <cmath>

#include "indexpool/reference/training/operands.hpp"

namespace indexpool::reference::training {

// The cosine of two vectors of n channels; 0 when one of them is zero, and then without gradient.
template <class T>
struct Cosine {
  T value{}, query_square{}, vector_square{};
  bool defined = false;
};
template <class T>
Cosine<T> cosine(const T* q, const T* v, std::size_t n) {
  using std::sqrt;
  Cosine<T> result;
  T dot = 0;
  for (std::size_t c = 0; c < n; ++c) {
    dot += q[c] * v[c];
    result.query_square += q[c] * q[c];
    result.vector_square += v[c] * v[c];
  }
  result.defined = result.query_square > 0 && result.vector_square > 0;
  if (result.defined) result.value = dot / (sqrt(result.query_square) * sqrt(result.vector_square));
  return result;
}
// d cos / dq = v / (|q| |v|) - cos q / |q|^2, and likewise for v.
template <class T>
void cosine_backward(const Cosine<T>& of, const T& g, const T* q, const T* v, std::size_t n,
                     T* grad_q, T* grad_v) {
  using std::sqrt;
  if (!of.defined) return;
  const T both = sqrt(of.query_square) * sqrt(of.vector_square);
  for (std::size_t c = 0; c < n; ++c) {
    grad_q[c] += g * (v[c] / both - of.value * q[c] / of.query_square);
    grad_v[c] += g * (q[c] / both - of.value * v[c] / of.vector_square);
  }
}

// Calls each(g, i, element of the vector, cosine with the group's query).
template <class T, class Each>
void for_each_cosine(const Pooling& p, const Arrays<T>& arrays, const Each& each) {
  const std::vector<T>&queries = arrays.find("queries")->second,
        &vectors = arrays.find("vectors")->second;
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    for (auto i = static_cast<std::size_t>(p.groups[g].absent); i < p.m(); ++i) {
      const std::size_t at = p.element(p.groups[g], i);
      each(g, i, at, cosine(queries.data() + g * p.dim(), vectors.data() + at, p.dim()));
    }
  }
}
template <class T>
T content(const Pooling& p, const T& cos) {
  return p.raw_cosine ? cos : T((1 + cos) / 2);
}

template <class T>
struct AdditiveParameters {
  T alpha, beta, gamma, sigma, tau;
  explicit AdditiveParameters(const Arrays<T>& a)
      : alpha(a.find("alpha")->second[0]),
        beta(a.find("beta")->second[0]),
        gamma(a.find("gamma")->second[0]),
        sigma(a.find("sigma")->second[0]),
        tau(a.find("tau")->second[0]) {}
  T position(double distance) const {
    using std::exp;
    const T x = distance / sigma;
    return exp(T(-x * x / 2));
  }
  T age(double steps) const {
    using std::exp;
    return exp(T(-steps / tau));
  }
};

template <class T>
std::vector<T> additive_weights(const Pooling& p, const Arrays<T>& arrays) {
  const AdditiveParameters<T> a(arrays);
  std::vector<T> w(p.groups.size() * p.m(), T(0));
  for_each_cosine<T>(p, arrays, [&](std::size_t g, std::size_t i, std::size_t, const auto& cos) {
    const std::size_t k = g * p.m() + i;
    w[k] = a.alpha * a.position(p.distances[k]) + a.beta * content(p, cos.value) +
           a.gamma * a.age(p.ages[k]);
  });
  return w;
}

template <class T>
void additive_backward(const Pooling& p, const Arrays<T>& arrays,
                       const std::vector<T>& grad_weights, Arrays<T>& grad) {
  const AdditiveParameters<T> a(arrays);
  const T* queries = arrays.find("queries")->second.data();
  const T* vectors = arrays.find("vectors")->second.data();
  for_each_cosine<T>(p, arrays, [&](std::size_t g, std::size_t i, std::size_t at, const auto& cos) {
    const std::size_t k = g * p.m() + i;
    const T& w = grad_weights[k];
    const T d = p.distances[k], steps = p.ages[k];
    const T position = a.position(p.distances[k]), age = a.age(p.ages[k]);
    grad["alpha"][0] += w * position;
    grad["beta"][0] += w * content(p, cos.value);
    grad["gamma"][0] += w * age;
    grad["sigma"][0] += w * a.alpha * position * d * d / (a.sigma * a.sigma * a.sigma);
    grad["tau"][0] += w * a.gamma * age * steps / (a.tau * a.tau);
    const T of_cosine = w * a.beta * (p.raw_cosine ? T(1) : T(0.5));
    cosine_backward(cos, of_cosine, queries + g * p.dim(), vectors + at, p.dim(),
                    grad["queries"].data() + g * p.dim(), grad["vectors"].data() + at);
  });
}

template <class T>
std::vector<T> tfidf_weights(const Pooling& p, const Arrays<T>& arrays) {
  const std::vector<T>&mix = arrays.find("mix")->second,
        &position = arrays.find("position_terms")->second;
  std::vector<T> w(p.groups.size() * p.m(), T(0));
  for_each_cosine<T>(p, arrays, [&](std::size_t g, std::size_t i, std::size_t, const auto& cos) {
    const std::size_t k = g * p.m() + i;
    w[k] = mix[0] * p.access_terms[k] + mix[1] * position[i] + mix[2] * (1 + cos.value) / 2;
  });
  return w;
}

template <class T>
void tfidf_backward(const Pooling& p, const Arrays<T>& arrays, const std::vector<T>& grad_weights,
                    Arrays<T>& grad) {
  const std::vector<T>&mix = arrays.find("mix")->second,
        &position = arrays.find("position_terms")->second;
  const T* queries = arrays.find("queries")->second.data();
  const T* vectors = arrays.find("vectors")->second.data();
  for_each_cosine<T>(p, arrays, [&](std::size_t g, std::size_t i, std::size_t at, const auto& cos) {
    const std::size_t k = g * p.m() + i;
    const T& w = grad_weights[k];
    grad["mix"][0] += w * p.access_terms[k];
    grad["mix"][1] += w * position[i];
    grad["mix"][2] += w * (1 + cos.value) / 2;
    grad["position_terms"][i] += w * mix[1];
    cosine_backward(cos, T(w * mix[2] / 2), queries + g * p.dim(), vectors + at, p.dim(),
                    grad["queries"].data() + g * p.dim(), grad["vectors"].data() + at);
  });
}

// Rows of a gate: [hidden state of the group's token; vector i].
template <class T>
struct GateRow {
  std::size_t hidden, head, weight, vector;  // first elements
};
template <class T, class Each>
void for_each_gate(const Pooling& p, const Arrays<T>& arrays, const Each& each) {
  const auto heads = static_cast<std::size_t>(p.heads);
  const std::size_t width = arrays.find("gate_weight")->second.size() / heads;
  const std::size_t hidden = width - p.dim();
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    for (auto i = static_cast<std::size_t>(p.groups[g].absent); i < p.m(); ++i) {
      each(g * p.m() + i,
           GateRow<T>{g / heads * hidden, g % heads, g % heads * width, p.element(p.groups[g], i)},
           hidden);
    }
  }
}

template <class T>
std::vector<T> gated_weights(const Pooling& p, const Arrays<T>& arrays) {
  using std::exp;
  const std::vector<T>&states = arrays.find("hidden_states")->second,
        &gate = arrays.find("gate_weight")->second, &bias = arrays.find("gate_bias")->second,
        &vectors = arrays.find("vectors")->second;
  std::vector<T> w(p.groups.size() * p.m(), T(0));
  for_each_gate<T>(p, arrays, [&](std::size_t k, const GateRow<T>& row, std::size_t hidden) {
    T z = bias[row.head];
    for (std::size_t x = 0; x < hidden; ++x) z += gate[row.weight + x] * states[row.hidden + x];
    for (std::size_t c = 0; c < p.dim(); ++c)
      z += gate[row.weight + hidden + c] * vectors[row.vector + c];
    w[k] = 1 / (1 + exp(T(-z)));
  });
  return w;
}

// sigmoid' = w (1 - w), from the stored w.
template <class T>
void gated_backward(const Pooling& p, const Arrays<T>& arrays, const std::vector<T>& w,
                    const std::vector<T>& grad_weights, Arrays<T>& grad) {
  const std::vector<T>&states = arrays.find("hidden_states")->second,
        &gate = arrays.find("gate_weight")->second, &vectors = arrays.find("vectors")->second;
  std::vector<T>&of_states = grad["hidden_states"], &of_gate = grad["gate_weight"],
  &of_bias = grad["gate_bias"], &of_vectors = grad["vectors"];
  for_each_gate<T>(p, arrays, [&](std::size_t k, const GateRow<T>& row, std::size_t hidden) {
    const T z = grad_weights[k] * w[k] * (1 - w[k]);
    of_bias[row.head] += z;
    for (std::size_t x = 0; x < hidden; ++x) {
      of_gate[row.weight + x] += z * states[row.hidden + x];
      of_states[row.hidden + x] += z * gate[row.weight + x];
    }
    for (std::size_t c = 0; c < p.dim(); ++c) {
      of_gate[row.weight + hidden + c] += z * vectors[row.vector + c];
      of_vectors[row.vector + c] += z * gate[row.weight + hidden + c];
    }
  });
}

}  // namespace indexpool::reference::training
