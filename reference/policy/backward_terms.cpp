// From the gradients of additive and tfidf weights back to query, vectors and the scalars that mix
// the terms.
//
// Model of an implementation: the cosine as forward (functions.hpp); b / (|q| |V|) and b cos /
// |V|^2 by that many roundings more, in any order, then sums of products; what a query takes from
// its own direction may be added up before it is divided by |q|^2. Where the cosine or a weight's
// gradient is open, so is everything that it reaches.
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
  T along{};                  // |b cos|
  T to_vector{}, to_query{};  // what subnormal products in another order may be off by
};
template <class T>
Slope<T> slope_of(const CosineParts<T>& of, std::size_t i, const Ball<T>& b) {
  Slope<T> slope;
  const Ball<T>&q = of.query_square, &v = of.squares[i], &cos = of.cosines[i];
  slope.defined = b.open() || (q.value != 0 && v.value != 0);
  if (!slope.defined) return slope;
  if (cos.open() || b.open()) {
    slope.other = slope.own_vector = slope.own_query = open_ball(T(0));
    return slope;
  }
  const Ball<T> turned = times(b, cos, in_binary32);
  slope.other = over_norms(b, q, v);
  slope.own_vector = over(turned, v, quotient_roundings);
  slope.own_query = over(turned, q, quotient_roundings);
  using std::sqrt;
  const T both =
      T(in_binary32.absolute(4)) * (1 + b.magnitude()) * (1 + 1 / sqrt(T(v.low() * q.low())));
  slope.along = turned.magnitude();
  slope.to_vector = both * (1 + 1 / v.low());
  slope.to_query = both * (1 + 1 / q.low());
  return slope;
}

// cosine_share grad_weights: the halves of shares are exact but for subnormal ones.
template <class T>
Ball<T> shared(float grad, const T& share) {
  const Ball<T> whole = stored_ball<T>(grad), half{share, T(in_binary32.absolute(1))};
  return rounded(times(whole, half, in_binary32), in_binary32, 1);
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
    T subnormal = 0, along = 0;
    for (std::int64_t i = absent; i < m; ++i) {
      const std::size_t slot = place(g * m + i), k = place(i - absent);
      const auto slope = slope_of(parts, k, shared<T>(grad_[slot], T(share_)));
      store(result_.cosines, slot, parts.cosines[k]);
      to_vector(parts, slope, slot, k);
      subnormal += slope.to_query;
      along += slope.along;
      if (!slope.defined) continue;
      for (std::size_t c = 0; c < to_query.size(); ++c) {
        to_query[c].add(slope.other, T(parts.vectors[k * to_query.size() + c]));
        to_query[c].add(slope.own_query, T(-parts.query[c]));
      }
    }
    for (std::size_t c = 0; c < to_query.size(); ++c) {
      auto& terms = to_query[c];
      terms.error += subnormal;
      terms.open = terms.open || may_overflow_f32(along);
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
        sum.error += slope.to_vector;
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

// An exponential times a power of what it is of, at least 0, over a divisor, in n roundings. Where
// the exponential is 0 in binary32, so is the product; the power may be subnormal before it is
// divided.
template <class T>
Ball<T> fading(const Ball<T>& exponential, const T& exponent, const T& power, const T& divisor,
               double n) {
  if (exponent < T(least_exponent)) return {T(0), T(f32_subnormal)};
  const T factor = power / divisor;
  Ball<T> product = rounded(Ball<T>{exponential.value * factor, exponential.error * factor},
                            in_binary32, n, T(exponential.magnitude() * factor));
  product.error += T(in_binary32.absolute(3)) * (1 + 1 / divisor);
  return product;
}

template <class T>
class TermSums {
 public:
  TermSums(const PoolingInputs& in, std::span<const float> grad, std::span<const float> cosines,
           std::int64_t groups_per_row)
      : in_(in), grad_(grad), cosines_(cosines), groups_per_row_(groups_per_row) {}

  // alpha, beta, gamma, sigma, tau
  WeightTermGradients operator()(const AdditiveTerms& w) {
    resize(5);
    over_slots([&](std::int64_t g, std::int64_t, std::int64_t at, const Ball<T>& b) {
      Terms<T>* const sums = row_of_group(g);
      const T x = T(w.distances.at(at)) / T(w.sigma), steps = T(w.ages.at(at)) / T(w.tau);
      const Ball<T> position = position_of<T>(w, at, in_binary32),
                    age = age_of<T>(w, at, in_binary32);
      const Ball<T> alpha{T(w.alpha), T(0)}, gamma{T(w.gamma), T(0)};
      add(sums[0], b, position);
      add(sums[1], b, w.raw_cosine ? stored_ball<T>(cosine(at)) : content(at));
      add(sums[2], b, age);
      const Ball<T> spread =
          fading<T>(position, T(-x * x / 2), T(x * x), T(w.sigma), 3 * quotient_roundings + 3);
      add(sums[3], b, times(alpha, spread, in_binary32));
      const Ball<T> decay = fading<T>(age, T(-steps), steps, T(w.tau), 2 * quotient_roundings + 2);
      add(sums[4], b, times(gamma, decay, in_binary32));
    });
    return finish();
  }
  // mix, and what each slot gives its position term
  WeightTermGradients operator()(const AccessTerms& w) {
    resize(3);
    Bounded positions(Shape{in_.group_count(), in_.index_kpool});
    over_slots([&](std::int64_t g, std::int64_t i, std::int64_t at, const Ball<T>& b) {
      Terms<T>* const sums = row_of_group(g);
      add(sums[0], b, access_term<T>(in_, w, at, accesses_of(in_, w, g), in_binary32));
      add(sums[1], b, Ball<T>{T(w.position_terms.at(i)), T(0)});
      add(sums[2], b, content(at));
      store(positions, place(at), times(b, Ball<T>{T(w.mix[1]), T(0)}, in_binary32));
    });
    return {finish().terms, std::move(positions)};
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
  void resize(std::int64_t terms) {
    terms_ = terms;
    rows_ = (in_.group_count() + groups_per_row_ - 1) / groups_per_row_;
    sums_.resize(place(rows_ * terms));
  }
  Terms<T>* row_of_group(std::int64_t g) { return sums_.data() + g / groups_per_row_ * terms_; }
  static void add(Terms<T>& sum, const Ball<T>& b, const Ball<T>& factor) {
    sum.add(times(b, factor, in_binary32), T(1));
  }
  WeightTermGradients finish() const {
    Bounded terms(Shape{rows_, terms_});
    for (std::size_t k = 0; k < sums_.size(); ++k) store(terms, k, sums_[k].sum(in_binary32, 2));
    return {std::move(terms), {}};
  }

  const PoolingInputs& in_;
  std::span<const float> grad_, cosines_;
  std::int64_t groups_per_row_, terms_ = 0, rows_ = 0;
  std::vector<Terms<T>> sums_;  // [rows, terms]
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
                                  std::span<const float> cosines, std::int64_t groups_per_row,
                                  Precision precision) {
  check_operands(inputs);
  if (groups_per_row < 1)
    throw ConfigError(
        fmt::format("{} groups in a row of sums; expected at least 1", groups_per_row));
  const std::int64_t weights = inputs.group_count() * inputs.index_kpool;
  check_size("gradients of pool weights", grad_weights.size(), weights);
  check_size("cosines", cosines.size(), weights);
  const auto run = [&]<class T>(T) {
    return std::visit(TermSums<T>(inputs, grad_weights, cosines, groups_per_row), inputs.weights);
  };
  return precision == Precision::binary64 ? run(double{}) : run(Quad{});
}

}  // namespace indexpool::reference
