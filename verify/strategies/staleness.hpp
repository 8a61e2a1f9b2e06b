// What pooling from vectors that have moved since may be off by: a bound that is known when the
// pool is made, from the threshold alone.
//
// Let V'_i be the vectors a group was pooled from, V_i those of now, and a'_i, a_i their shares:
// the weights over their sum, convex. C = sum a_i V_i, C' = sum a'_i V'_i. Then, channel by
// channel,
//   C - C' = sum a_i (V_i - V'_i) + sum (a_i - a'_i) V'_i.
// The first sum is an average of numbers within [-t, t], t the threshold: |.| <= t. Where the
// weights do not depend on the vectors, a = a' and that is the bound. Else the second sum moves a
// mass T = sum |a_i - a'_i| / 2 from some V' to others, since shares sum to 1 before and after: it
// is T times a difference of two averages of V', at most T (max V'_i - min V'_i).
//
// T: let every weight change by a factor within [e^-L, e^L]. With P the old shares of those i whose
// share grows, their new sum is largest when their weights grow by e^L and all others shrink by
// e^-L (it rises in the former and falls in the latter): P' = P e^2L / (P e^2L + 1 - P). P' - P is
// largest at P = 1 / (1 + e^L), where it is (e^L - 1) / (e^L + 1). So T <= tanh(L / 2).
//
// L, the largest |log w_i - log w'_i|:
//   fixed     0
//   gated     w = sigmoid(z), d log w / dz = 1 - w <= 1, and z = W . V + b moves by at most
//             |W|_1 t. So L <= |W|_1 t.
//   additive, tfidf   w = base_i + s (1 + cos(q, V_i)) / 2, base_i not of the vectors. A cosine
//             moves by at most |u - u'|, u = V / |V|, and |u - u'| <= 2 |V - V'| / (|V| + |V'|)
//             (Dunkl and Williams, Amer. Math. Monthly 71, 1964, for inner products). With
//             |V - V'| <= d = t sqrt(D) and |V| >= |V'| - d: at most 2 d / (2 |V'| - d), and 2. So
//             w'_i moves by at most e = s / 2 times that, and L_i <= -log(1 - e / w'_i); no bound
//             below e = w'_i, where T <= 1 is all that is known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace indexpool::verify::strategies {

// What the weights of a group depend on.
enum class Dependence { none, gate, cosine };
struct WeightSlope {
  Dependence dependence = Dependence::none;
  double gate_sum = 0;      // |W|_1 over the vector's channels
  double cosine_share = 0;  // s
};

// L of a group: weights w'_i as they were computed, V' [m, D]. Infinite where there is none.
double log_weight_change(const WeightSlope& slope, double threshold,
                         std::span<const double> weights, std::span<const double> pooled_from);

// [D], for |C - C'|, with the rounding of binary64 on top: 4 m 2^-53 max |V'|.
std::vector<double> staleness_bound(double threshold, double log_weight_change,
                                    std::span<const double> pooled_from, std::int64_t vectors);

}  // namespace indexpool::verify::strategies
