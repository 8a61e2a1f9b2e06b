// From the gradients of additive and tfidf weights back to query, vectors and the scalars that mix
// the terms.
//
// Model of an implementation: the cosine as forward (functions.hpp); b / (|q| |V|) and b cos /
// |V|^2 by that many roundings more, in any order, then sums of products. Where the cosine is open,
// so is everything that it reaches.
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/policy/store.hpp"
#include "indexpool/reference/policy/terms.hpp"
#include "indexpool/reference/policy/weight_terms.hpp"
#include "indexpool/reference/policy_backward.hpp"

namespace indexpool::reference {
namespace {

std::size_t place(std::int64_t x) { return static_cast<std::size_t>(x); }

void check_size(const char* what, std::size_t found, std::int64_t expected) {
  if (static_cast<std::int64_t>(found) != expected)
    throw ConfigError(fmt::format("{}: found {} values, expected {}", what, found, expected));
}

// x / |x|^2 and the like: relative to a square that is a normal number.
template <class T>
Ball<T> over(const Ball<T>& top, const Ball<T>& square, double n) {
  using std::abs;
  const T value = top.value / square.value;
  if (top.open() || square.open()) return open_ball(value);
  const T least = square.low();
  if (may_overflow_f32(T(top.magnitude() / least))) return open_ball(value);
  return rounded(Ball<T>{value, (top.error + abs(value) * square.error) / least}, in_binary32, n,
                 T(top.magnitude() / least));
}

// b / (|q| |V|) of squares whose product is a normal number.
template <class T>
Ball<T> over_norms(const Ball<T>& b, const Ball<T>& square, const Ball<T>& other) {
  using std::abs;
  using std::sqrt;
  const T least = sqrt(T(square.low() * other.low())), most = sqrt(T(square.high() * other.high()));
  const T norms = sqrt(T(square.value * other.value)), value = b.value / norms;
  if (b.open() || may_overflow_f32(T(b.magnitude() / least))) return open_ball(value);
  const T apart = std::max(T(norms / least - 1), T(1 - norms / most));
  return rounded(Ball<T>{value, b.error / least + abs(value) * apart}, in_binary32,
                 cosine_roundings + 1, T(b.magnitude() / least));
}

// What the cosine of one vector passes on: to the other of the two, and to each itself.
template <class T>
struct Slope {
  bool defined = false;
  Ball<T> other, own_vector, own_query;
  T subnormal{};  // for products in another order
};
template <class T>
Slope<T> slope_of(const CosineParts<T>& of, std::size_t i, const Ball<T>& b) {
  Slope<T> slope;
  const Ball<T>&q = of.query_square, &v = of.squares[i], &cos = of.cosines[i];
  if (q.value == 0 || v.value == 0) return slope;
  slope.defined = true;
  if (cos.open() || b.open()) {
    slope.other = slope.own_vector = slope.own_query = open_ball(T(0));
    return slope;
  }
  const Ball<T> turned = times(b, cos, in_binary32);
  slope.other = over_norms(b, q, v);
  slope.own_vector = over(turned, v, quotient_roundings);
  slope.own_query = over(turned, q, quotient_roundings);
  slope.subnormal =
      T(in_binary32.absolute(4)) * (1 + b.magnitude()) * (1 + 1 / v.low()) * (1 + 1 / q.low());
  return slope;
}

// cosine_share grad_weights: the halves of shares are exact but for subnormal ones.
template <class T>
Ball<T> shared(float grad, const T& share) {
  const Ball<T> whole = stored_ball<T>(grad);
  return rounded(times(whole, Ball<T>{share, T(0)}, in_binary32), in_binary32, 1);
}

template <class T>
class Cosines {
 public:
  Cosines(const PoolingInputs& in, const Tensor& queries, double share, std::span<const float> grad,
          std::span<const float> held)
      : in_(in), queries_(queries), share_(share), grad_(grad), held_(held) {
    result_.vectors = Bounded(Shape{in.group_count(), in.index_kpool, in.head_dim});
    result_.queries = Bounded(Shape{in.group_count(), in.head_dim});
    result_.cosines = Bounded(Shape{in.group_count(), in.index_kpool});
  }
  CosineGradients run() && {
    for (std::int64_t g = 0; g < in_.group_count(); ++g) group(g);
    return std::move(result_);
  }

 private:
  void group(std::int64_t g) {
    const CosineParts<T> parts(in_, queries_, g, in_binary32);
    const std::int64_t absent = in_.groups[place(g)].absent, m = in_.index_kpool;
    std::vector<Terms<T>> to_query(place(in_.head_dim));
    T subnormal = 0;
    for (std::int64_t i = absent; i < m; ++i) {
      const std::size_t slot = place(g * m + i), k = place(i - absent);
      const auto slope = slope_of(parts, k, shared<T>(grad_[slot], T(share_)));
      store(result_.cosines, slot, parts.cosines[k]);
      to_vector(parts, slope, slot, k);
      subnormal += slope.subnormal;
      if (!slope.defined) continue;
      for (std::size_t c = 0; c < to_query.size(); ++c) {
        to_query[c].add(slope.other, T(parts.vectors[k * to_query.size() + c]));
        to_query[c].add(slope.own_query, T(-parts.query[c]));
      }
    }
    for (std::size_t c = 0; c < to_query.size(); ++c) {
      auto& terms = to_query[c];
      terms.error += subnormal;
      store(result_.queries, place(g) * to_query.size() + c, terms.sum(in_binary32, more));
    }
  }
  void to_vector(const CosineParts<T>& parts, const Slope<T>& slope, std::size_t slot,
                 std::size_t k) {
    const auto dim = parts.query.size();
    for (std::size_t c = 0; c < dim; ++c) {
      const Ball<T> held = stored_ball<T>(held_[slot * dim + c]);
      Terms<T> sum;
      sum.add(held, T(1));
      if (slope.defined) {
        sum.add(slope.other, T(parts.query[c]));
        sum.add(slope.own_vector, T(-parts.vectors[k * dim + c]));
        sum.error += slope.subnormal;
      }
      store(result_.vectors, slot * dim + c, slope.defined ? sum.sum(in_binary32, more) : held);
    }
  }

  static constexpr double more = 4;  // factors in another order
  const PoolingInputs& in_;
  const Tensor& queries_;
  double share_;
  std::span<const float> grad_, held_;
  CosineGradients result_;
};

// e^-x times x^n: where the exponential is 0 in binary32, so is the product.
template <class T>
Ball<T> fading(const Ball<T>& exponential, const T& exponent, const T& factor, double n) {
  using std::abs;
  if (exponent < T(least_exponent)) return {T(0), T(f32_subnormal)};
  return rounded(Ball<T>{exponential.value * factor, exponential.error * abs(factor)}, in_binary32,
                 n, T(exponential.magnitude() * abs(factor)));
}

template <class T>
class TermSums {
 public:
  TermSums(const PoolingInputs& in, std::span<const float> grad, std::span<const float> cosines)
      : in_(in), grad_(grad), cosines_(cosines) {}

  // alpha, beta, gamma, sigma, tau
  WeightTermGradients operator()(const AdditiveTerms& w) {
    sums_.resize(5);
    over_slots([&](std::int64_t, std::int64_t, std::int64_t at, const Ball<T>& b) {
      const T x = T(w.distances.at(at)) / T(w.sigma), steps = T(w.ages.at(at)) / T(w.tau);
      const Ball<T> position = position_of<T>(w, at, in_binary32),
                    age = age_of<T>(w, at, in_binary32);
      const Ball<T> alpha{T(w.alpha), T(0)}, gamma{T(w.gamma), T(0)};
      add(0, b, position);
      add(1, b, w.raw_cosine ? stored_ball<T>(cosine(at)) : content(at));
      add(2, b, age);
      const Ball<T> spread =
          fading<T>(position, T(-x * x / 2), T(x * x / T(w.sigma)), 3 * quotient_roundings + 3);
      add(3, b, times(alpha, spread, in_binary32));
      const Ball<T> decay =
          fading<T>(age, T(-steps), T(steps / T(w.tau)), 2 * quotient_roundings + 2);
      add(4, b, times(gamma, decay, in_binary32));
    });
    return finish();
  }
  // mix, and the position terms
  WeightTermGradients operator()(const AccessTerms& w) {
    sums_.resize(3);
    positions_.resize(place(in_.index_kpool));
    over_slots([&](std::int64_t g, std::int64_t i, std::int64_t at, const Ball<T>& b) {
      add(0, b, access_term<T>(in_, w, at, accesses_of(in_, w, g), in_binary32));
      add(1, b, Ball<T>{T(w.position_terms.at(i)), T(0)});
      add(2, b, content(at));
      positions_[place(i)].add(times(b, Ball<T>{T(w.mix[1]), T(0)}, in_binary32), T(1));
    });
    return finish();
  }
  template <class Other>
  WeightTermGradients operator()(const Other&) {
    throw ConfigError("policy " + in_.policy + " has no weights that are sums of terms");
  }

 private:
  template <class F>
  void over_slots(const F& f) const {
    for (std::int64_t g = 0; g < in_.group_count(); ++g)
      for (std::int64_t i = in_.groups[place(g)].absent; i < in_.index_kpool; ++i)
        f(g, i, g * in_.index_kpool + i, stored_ball<T>(grad_[place(g * in_.index_kpool + i)]));
  }
  float cosine(std::int64_t at) const { return cosines_[place(at)]; }
  Ball<T> content(std::int64_t at) const {
    using std::abs;
    const Ball<T> cos = stored_ball<T>(cosine(at));
    if (cos.open()) return cos;
    return rounded(Ball<T>{(1 + cos.value) / 2, T(0)}, in_binary32, 2, T((1 + abs(cos.value)) / 2));
  }
  void add(std::size_t sum, const Ball<T>& b, const Ball<T>& factor) {
    sums_[sum].add(times(b, factor, in_binary32), T(1));
  }
  static Bounded stored(const std::vector<Terms<T>>& sums) {
    Bounded result(Shape{static_cast<std::int64_t>(sums.size())});
    for (std::size_t k = 0; k < sums.size(); ++k) store(result, k, sums[k].sum(in_binary32, 2));
    return result;
  }
  WeightTermGradients finish() const { return {stored(sums_), stored(positions_)}; }

  const PoolingInputs& in_;
  std::span<const float> grad_, cosines_;
  std::vector<Terms<T>> sums_, positions_;
};

struct Mixed {
  const Tensor& queries;
  double cosine_share;
};
Mixed mixed(const PoolingInputs& in) {
  if (const auto* w = std::get_if<AdditiveTerms>(&in.weights))
    return {w->queries, static_cast<double>(w->beta) * (w->raw_cosine ? 1 : 0.5)};
  if (const auto* w = std::get_if<AccessTerms>(&in.weights))
    return {w->queries, static_cast<double>(w->mix[2]) * 0.5};
  throw ConfigError("policy " + in.policy + " has no cosine in its weights");
}

}  // namespace

CosineGradients through_cosines(const PoolingInputs& inputs, std::span<const float> grad_weights,
                                std::span<const float> held_vectors, Precision precision) {
  check_operands(inputs);
  const Mixed of = mixed(inputs);
  const std::int64_t weights = inputs.group_count() * inputs.index_kpool;
  check_size("gradients of pool weights", grad_weights.size(), weights);
  check_size("gradients of vectors", held_vectors.size(), weights * inputs.head_dim);
  const auto run = [&]<class T>(T) {
    return Cosines<T>(inputs, of.queries, of.cosine_share, grad_weights, held_vectors).run();
  };
  return precision == Precision::binary64 ? run(double{}) : run(Quad{});
}

WeightTermGradients through_terms(const PoolingInputs& inputs, std::span<const float> grad_weights,
                                  std::span<const float> cosines, Precision precision) {
  check_operands(inputs);
  const std::int64_t weights = inputs.group_count() * inputs.index_kpool;
  check_size("gradients of pool weights", grad_weights.size(), weights);
  check_size("cosines", cosines.size(), weights);
  const auto run = [&]<class T>(T) {
    return std::visit(TermSums<T>(inputs, grad_weights, cosines), inputs.weights);
  };
  return precision == Precision::binary64 ? run(double{}) : run(Quad{});
}

}  // namespace indexpool::reference
