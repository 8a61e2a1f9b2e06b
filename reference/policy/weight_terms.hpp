// The terms that additive and tfidf weights are sums of. Internal to the layer.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "indexpool/reference/policy/functions.hpp"
#include "indexpool/reference/policy/operands.hpp"

namespace indexpool::reference {

// -(d / sigma)^2 / 2 times log2(e): two quotients, a square, two for the constant; and -a / tau.
inline constexpr int position_roundings = 2 * quotient_roundings + 3;
inline constexpr int age_roundings = quotient_roundings + 2;

// Slot `at` of [G, m].
template <class T>
Ball<T> position_of(const AdditiveTerms& w, std::int64_t at, Arithmetic arithmetic) {
  const T distance = T(w.distances.at(at)) / T(w.sigma);
  return exponential(T(-distance * distance / 2), position_roundings, arithmetic);
}
template <class T>
Ball<T> age_of(const AdditiveTerms& w, std::int64_t at, Arithmetic arithmetic) {
  return exponential(T(-T(w.ages.at(at)) / T(w.tau)), age_roundings, arithmetic);
}

// Of all present vectors of a group.
inline double accesses_of(const PoolingInputs& in, const AccessTerms& w, std::int64_t group) {
  double accesses = 0;
  for (std::int64_t i = in.index_kpool - present(in, group); i < in.index_kpool; ++i)
    accesses += w.accesses.at(group * in.index_kpool + i);
  return accesses;
}
// tf idf. Counts are exact in binary32 up to 2^24, their sum beyond is not.
template <class T>
Ball<T> access_term(const PoolingInputs& in, const AccessTerms& w, std::int64_t at, double accesses,
                    Arithmetic arithmetic) {
  if (accesses == 0) return {};
  const T tf = T(w.accesses.at(at)) / T(accesses);
  const auto log = log_ratio<T>(1.0 + static_cast<double>(w.all_groups),
                                1.0 + w.groups_accessed.at(at), arithmetic);
  const Ball<T> idf =
      rounded(Ball<T>{log.value + 1, log.error}, arithmetic, 1, T(log.magnitude() + 1));
  const double sums = accesses > 0x1p24 ? static_cast<double>(in.index_kpool) : 0;
  return rounded(Ball<T>{tf * idf.value, tf * idf.error}, arithmetic, sums + quotient_roundings + 1,
                 T(tf * idf.magnitude()));
}

// A group's query and its present vectors: their products and squares.
template <class T>
struct CosineParts {
  std::vector<double> query, vectors;  // [D], [present, D]
  Ball<T> query_square;
  std::vector<Ball<T>> squares, cosines;

  CosineParts(const PoolingInputs& in, const Tensor& queries, std::int64_t group,
              Arithmetic arithmetic)
      : query(row_of(queries, group)), vectors(gather(in, in.vectors, group)) {
    const std::span<const double> q = query, all = vectors;
    query_square = dot_ball<T>(q, q, arithmetic);
    for (std::size_t first = 0; first < all.size(); first += q.size()) {
      const auto v = all.subspan(first, q.size());
      squares.push_back(dot_ball<T>(v, v, arithmetic));
      cosines.push_back(
          cosine(dot_ball<T>(q, v, arithmetic), query_square, squares.back(), arithmetic));
    }
  }
};

}  // namespace indexpool::reference
