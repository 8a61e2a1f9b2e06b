// Weights that are a softmax, and their gradients from the stored weights: one row for all channels
// (composite), or a column for each channel of each group (kpool, csa). Internal to the layer.
#pragma once

#include <algorithm>
#include <cmath>

#include "indexpool/reference/training/operands.hpp"

namespace indexpool::reference::training {

// In place over n elements, `stride` apart.
template <class T>
void softmax(T* x, std::size_t n, std::size_t stride) {
  using std::exp;
  T largest = x[0], total = 0;
  for (std::size_t i = 1; i < n; ++i) largest = std::max(largest, x[i * stride]);
  for (std::size_t i = 0; i < n; ++i) {
    x[i * stride] = exp(T(x[i * stride] - largest));
    total += x[i * stride];
  }
  for (std::size_t i = 0; i < n; ++i) x[i * stride] /= total;
}

// d/dz_i of sum_j g_j w_j = w_i (g_i - sum_j w_j g_j), w = softmax(z) as it was stored.
template <class T, class Put>
void softmax_backward(const T* w, const T* g, std::size_t n, std::size_t stride, const Put& put) {
  T mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += w[i * stride] * g[i * stride];
  for (std::size_t i = 0; i < n; ++i) put(i, T(w[i * stride] * (g[i * stride] - mean)));
}

template <class T>
std::vector<T> role_weights(const Pooling& p, const Arrays<T>& arrays) {
  std::vector<T> w = arrays.find("pool_matrix")->second;
  for (std::size_t first = 0; first + p.m() <= w.size(); first += p.m())
    softmax(w.data() + first, p.m(), 1);
  return w;
}

template <class T>
void role_backward(const Pooling& p, const std::vector<T>& w, const std::vector<T>& grad_weights,
                   Arrays<T>& grad) {
  std::vector<T>& matrix = grad["pool_matrix"];
  for (std::size_t first = 0; first + p.m() <= w.size(); first += p.m()) {
    softmax_backward(w.data() + first, grad_weights.data() + first, p.m(), 1,
                     [&](std::size_t i, const T& x) { matrix[first + i] += x; });
  }
}

// [G, m, D]; 0 where a vector is absent.
template <class T>
std::vector<T> channel_weights(const Pooling& p, const Arrays<T>& arrays) {
  const std::vector<T>& scores = arrays.find("gate_scores")->second;
  const std::vector<T>& bias = arrays.find("position_bias")->second;
  const std::size_t m = p.m(), dim = p.dim();
  std::vector<T> w(p.groups.size() * m * dim, T(0));
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    const auto absent = static_cast<std::size_t>(p.groups[g].absent);
    T* group = w.data() + g * m * dim;
    for (std::size_t i = absent; i < m; ++i) {
      const std::size_t row = p.element(p.groups[g], i);
      for (std::size_t c = 0; c < dim; ++c)
        group[i * dim + c] = scores[row + c] + bias[i * dim + c];
    }
    for (std::size_t c = 0; c < dim; ++c) softmax(group + absent * dim + c, m - absent, dim);
  }
  return w;
}

template <class T>
void channel_backward(const Pooling& p, const std::vector<T>& w, const std::vector<T>& grad_weights,
                      Arrays<T>& grad) {
  std::vector<T>&scores = grad["gate_scores"], &bias = grad["position_bias"];
  const std::size_t m = p.m(), dim = p.dim();
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    const auto absent = static_cast<std::size_t>(p.groups[g].absent);
    for (std::size_t c = 0; c < dim; ++c) {
      const std::size_t first = (g * m + absent) * dim + c;
      softmax_backward(w.data() + first, grad_weights.data() + first, m - absent, dim,
                       [&](std::size_t i, const T& x) {
                         scores[p.element(p.groups[g], absent + i) + c] += x;
                         bias[(absent + i) * dim + c] += x;
                       });
    }
  }
}

}  // namespace indexpool::reference::training
