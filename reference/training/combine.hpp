// From stored pool weights to the pooled vector and back: the weighted sum, its division by the
// weights' sum, and for csa RMSNorm and rotation. Internal to the layer.
#pragma once

#include <cmath>

#include "indexpool/reference/training/operands.hpp"

namespace indexpool::reference::training {

// Below the smallest normal number of binary32 a sum of weights has underflowed: the mean is
// pooled.
inline constexpr double underflowed_sum = 0x1p-126;

// What vector i of group g weighs in channel c, and by what the sum is divided (1 unless the policy
// divides; 0 for the mean).
template <class T>
struct StoredWeights {
  const Pooling& p;
  const std::vector<T>& w;
  bool per_channel = p.per_channel(), divides = p.info().normalisation == Normalisation::division;

  std::size_t index(std::size_t g, std::size_t i, std::size_t c) const {
    if (per_channel) return (g * p.m() + i) * p.dim() + c;
    const WeightRule rule = p.info().rule;
    const bool own_row = rule != WeightRule::given && rule != WeightRule::role_softmax;
    const std::size_t set = own_row ? g : static_cast<std::size_t>(p.groups[g].weight_set);
    return set * p.m() + i;
  }
  std::size_t first(std::size_t g) const { return static_cast<std::size_t>(p.groups[g].absent); }
  T divisor(std::size_t g) const {
    using std::abs;
    if (!divides) return 1;
    T sum = 0;
    for (std::size_t i = first(g); i < p.m(); ++i) sum += w[index(g, i, 0)];
    return abs(sum) < T(underflowed_sum) ? T(0) : sum;
  }
};

// [G, D], before norm and rotation.
template <class T>
std::vector<T> weighted_sums(const Pooling& p, const std::vector<T>& vectors,
                             const std::vector<T>& w) {
  const StoredWeights<T> stored{p, w};
  std::vector<T> sums(p.groups.size() * p.dim(), T(0));
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    const T divisor = stored.divisor(g);
    T* sum = sums.data() + g * p.dim();
    for (std::size_t i = stored.first(g); i < p.m(); ++i) {
      const T* v = vectors.data() + p.element(p.groups[g], i);
      for (std::size_t c = 0; c < p.dim(); ++c)
        sum[c] += divisor == 0 ? v[c] : T(w[stored.index(g, i, c)] * v[c]);
    }
    const T by = divisor == 0 ? T(static_cast<double>(p.m() - stored.first(g))) : divisor;
    if (divisor != 1)
      for (std::size_t c = 0; c < p.dim(); ++c) sum[c] /= by;
  }
  return sums;
}

// Adds to grad["vectors"] what reaches them with the weights held fixed; returns the gradient with
// respect to the stored weights: dC . V_i, or dC . (V_i - C) / sum w where the policy divides.
template <class T>
std::vector<T> sums_backward(const Pooling& p, const std::vector<T>& vectors,
                             const std::vector<T>& w, const std::vector<T>& sums,
                             const std::vector<T>& grad_sums, std::vector<T>& grad_vectors) {
  const StoredWeights<T> stored{p, w};
  std::vector<T> grad_weights(w.size(), T(0));
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    const T divisor = stored.divisor(g);
    const T* dc = grad_sums.data() + g * p.dim();
    const T* sum = sums.data() + g * p.dim();
    for (std::size_t i = stored.first(g); i < p.m(); ++i) {
      const std::size_t at = p.element(p.groups[g], i);
      for (std::size_t c = 0; c < p.dim(); ++c) {
        const std::size_t k = stored.index(g, i, c);
        if (divisor == 0) {
          grad_vectors[at + c] += dc[c] / static_cast<double>(p.m() - stored.first(g));
          continue;
        }
        grad_vectors[at + c] += dc[c] * w[k] / divisor;
        const T deviation = stored.divides ? T(vectors[at + c] - sum[c]) : vectors[at + c];
        grad_weights[k] += dc[c] * deviation / divisor;
      }
    }
  }
  return grad_weights;
}

template <class T>
T root_mean_square(const T* x, std::size_t n, double eps) {
  using std::sqrt;
  T square = 0;
  for (std::size_t c = 0; c < n; ++c) square += x[c] * x[c];
  return sqrt(T(square / static_cast<double>(n) + eps));
}

// Turns each pair of trailing channels by its angle, or back.
template <class T>
void rotate_pairs(const Pooling& p, std::size_t g, T* x, bool back) {
  const auto dims = static_cast<std::size_t>(p.rope_dims);
  for (std::size_t c = 0; c < dims; c += 2) {
    const double cosine = p.rope[g * dims + c];
    const double sine = back ? -p.rope[g * dims + c + 1] : p.rope[g * dims + c + 1];
    T *even = x + p.dim() - dims + c, *odd = even + 1;
    const T turned = *even * cosine - *odd * sine;
    *odd = *even * sine + *odd * cosine;
    *even = turned;
  }
}

// csa: [G, D] in place of the sums.
template <class T>
std::vector<T> norm_and_rotate(const Pooling& p, const std::vector<T>& norm_weight,
                               std::vector<T> sums) {
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    T* x = sums.data() + g * p.dim();
    const T root = root_mean_square(x, p.dim(), p.eps);
    for (std::size_t c = 0; c < p.dim(); ++c) x[c] *= norm_weight[c] / root;
    rotate_pairs(p, g, x, false);
  }
  return sums;
}

// With y = n x / r, r^2 = mean x^2 + eps: dx = n dy / r - x (n dy . x) / (D r^3).
template <class T>
std::vector<T> norm_and_rotate_backward(const Pooling& p, const std::vector<T>& norm_weight,
                                        const std::vector<T>& sums, std::vector<T> grad,
                                        std::vector<T>& grad_norm_weight) {
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    T* dy = grad.data() + g * p.dim();
    const T* x = sums.data() + g * p.dim();
    rotate_pairs(p, g, dy, true);
    const T root = root_mean_square(x, p.dim(), p.eps);
    T along = 0;
    for (std::size_t c = 0; c < p.dim(); ++c) {
      grad_norm_weight[c] += dy[c] * x[c] / root;
      along += norm_weight[c] * dy[c] * x[c];
    }
    const T share = along / (static_cast<double>(p.dim()) * root * root * root);
    for (std::size_t c = 0; c < p.dim(); ++c) dy[c] = norm_weight[c] * dy[c] / root - x[c] * share;
  }
  return grad;
}

}  // namespace indexpool::reference::training
