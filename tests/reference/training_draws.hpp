// Random poolings of every learnable form, on any scalar, and derivatives by differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "indexpool/reference/scalar.hpp"
#include "indexpool/reference/training/gradients.hpp"

namespace indexpool::reference::training {

// Sizes of one random pooling. Groups of csa overlap: a vector's gradient is a sum.
struct Sizes {
  std::int64_t index_kpool = 4, head_dim = 4, heads = 1, groups = 2;
  std::uint64_t seed = 1;
};

class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed) {}
  double normal() { return normal_(random_); }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  template <class T>
  std::vector<T> normals(std::size_t n, double scale = 1) {
    std::vector<T> values(n);
    for (T& x : values) x = T(scale * normal());
    return values;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

inline Pooling random_layout(const std::string& policy, const Sizes& sizes, Source& source) {
  Pooling p;
  p.policy = policy;
  p.index_kpool = sizes.index_kpool;
  p.head_dim = sizes.head_dim;
  p.heads = sizes.heads;
  p.raw_cosine = policy == "additive_raw";
  const bool windows = p.info().grouping == Grouping::windows;
  const std::int64_t step = windows ? sizes.index_kpool / 2 : sizes.index_kpool;
  for (std::int64_t i = 0; i < sizes.index_kpool; ++i) p.offsets.push_back(i);
  for (std::int64_t g = 0; g < sizes.groups; ++g) {
    const auto set = static_cast<std::int32_t>(
        p.info().rule == WeightRule::role_softmax ? g % (sizes.heads * p.info().outputs) : g);
    const bool first = windows && g == 0;
    p.groups.push_back({g * step, set, static_cast<std::int32_t>(first ? step : 0)});
  }
  const std::size_t terms = p.groups.size() * p.m();
  for (std::size_t k = 0; k < terms; ++k) {
    p.distances.push_back(source.between(0, 6));
    p.ages.push_back(source.between(0, 40));
    p.access_terms.push_back(source.between(0, 2));
  }
  if (p.has_norm()) {
    p.rope_dims = sizes.head_dim / 2 / 2 * 2;
    for (std::int64_t k = 0; k < sizes.groups * p.rope_dims / 2; ++k) {
      const double angle = source.between(-3, 3);
      p.rope.push_back(std::cos(angle));
      p.rope.push_back(std::sin(angle));
    }
  }
  return p;
}

// Weights of `additive` and `tfidf` stay well above zero: near zero their quotient has no useful
// derivative. Those of additive_raw, which has no such floor, are kept away from it by alpha.
template <class T>
Arrays<T> random_arrays(const Pooling& p, Source& source) {
  Arrays<T> arrays;
  std::int64_t rows = 0, sets = 0;
  for (const VectorGroup& group : p.groups) {
    rows = std::max(rows, group.first_row + p.index_kpool);
    sets = std::max<std::int64_t>(sets, group.weight_set + 1);
  }
  constexpr std::size_t hidden = 3;
  const auto heads = static_cast<std::size_t>(p.heads);
  for (const std::string& name : array_names(p.info())) {
    std::vector<T>& values = arrays[name];
    if (name == "vectors" || name == "gate_scores")
      values = source.normals<T>(static_cast<std::size_t>(rows) * p.dim());
    else if (name == "pool_weights" || name == "pool_matrix")
      values = source.normals<T>(static_cast<std::size_t>(sets) * p.m());
    else if (name == "queries")
      values = source.normals<T>(p.groups.size() * p.dim());
    else if (name == "hidden_states")
      values = source.normals<T>((p.groups.size() + heads - 1) / heads * hidden);
    else if (name == "gate_weight")
      values = source.normals<T>(heads * (hidden + p.dim()), 0.5);
    else if (name == "gate_bias")
      values = source.normals<T>(heads);
    else if (name == "position_bias")
      values = source.normals<T>(p.m() * p.dim());
    else if (name == "norm_weight")
      values = source.normals<T>(p.dim());
    else if (name == "position_terms")
      for (std::size_t i = 0; i < p.m(); ++i) values.push_back(T(source.between(0.2, 1)));
    else if (name == "mix")
      for (int i = 0; i < 3; ++i) values.push_back(T(source.between(0.2, 1)));
    else if (name == "alpha")
      values = {T(source.between(1, 2))};
    else if (name == "sigma" || name == "tau")
      values = {T(source.between(2, 20))};
    else
      values = {T(source.between(0.1, 0.6))};  // beta, gamma
  }
  return arrays;
}

// d f / d arrays[name][index]: central differences at h and h / 2, extrapolated once (Richardson).
// In binary128 with h = 2^-18: truncation of the order h^4 = 2^-72, rounding of 2^-112 / h = 2^-94.
inline Quad difference(const std::function<Quad(const Arrays<Quad>&)>& f, Arrays<Quad> arrays,
                       const std::string& name, std::size_t index) {
  const Quad centre = arrays[name][index];
  const auto central = [&](double h) {
    arrays[name][index] = centre + h;
    const Quad above = f(arrays);
    arrays[name][index] = centre - h;
    return Quad((above - f(arrays)) / (2 * h));
  };
  constexpr double h = 0x1p-18;
  const Quad coarse = central(h), fine = central(h / 2);
  return fine + (fine - coarse) / 3;
}

template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  T sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The largest |found - difference| over every array, relative to the element itself; elements below
// 1e-18 of the array's largest count as if they were that large.
inline double worst_relative_error(const std::function<Quad(const Arrays<Quad>&)>& f,
                                   const Arrays<Quad>& arrays, const Arrays<Quad>& found,
                                   std::size_t most_per_array, Source& source) {
  using boost::multiprecision::abs;
  Quad worst = 0;
  for (const auto& [name, values] : arrays) {
    const std::vector<Quad>& gradient = found.find(name)->second;
    Quad largest = 0;
    for (const Quad& x : gradient) largest = std::max(largest, Quad(abs(x)));
    const std::size_t n = values.size(), checked = std::min(n, most_per_array);
    const auto start = static_cast<std::size_t>(source.between(0, static_cast<double>(n)));
    for (std::size_t k = 0; k < checked; ++k) {
      const std::size_t i = (start + k * std::max<std::size_t>(1, n / checked)) % n;
      const Quad expected = difference(f, arrays, name, i);
      const Quad scale = std::max({Quad(abs(expected)), Quad(largest * 1e-18), Quad(1e-30)});
      worst = std::max(worst, Quad(abs(Quad(gradient[i] - expected)) / scale));
    }
  }
  return to_double(worst);
}

}  // namespace indexpool::reference::training
