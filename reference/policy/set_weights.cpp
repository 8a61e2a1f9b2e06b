// Model of an implementation, beyond functions.hpp: weights that are sums of terms round each term
// twice and each sum once, in any order (`term_roundings`). The hidden part of a gate is a dot
// product of its own, for 16-bit storage by tensor cores too; bias and hidden part may be what the
// sum over the vector starts from.
#include "indexpool/reference/policy/set_weights.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/dot_error.hpp"
#include "indexpool/reference/policy/weight_terms.hpp"

namespace indexpool::reference {
namespace {

// A product with its coefficient, (1 + cos) / 2, two sums.
inline constexpr int term_roundings = 5;

// coefficient * factor; `magnitude` of what the factor was added up from.
template <class T>
struct Term {
  T coefficient;
  Ball<T> factor;
  T magnitude;
};
template <class T>
Term<T> term(double coefficient, const Ball<T>& factor) {
  return {T(coefficient), factor, factor.magnitude()};
}

template <class T>
Ball<T> sum_of(std::span<const Term<T>> terms, Arithmetic arithmetic) {
  using std::abs;
  Ball<T> sum;
  T magnitude = 0;
  for (const Term<T>& t : terms) {
    if (t.factor.open()) return open_ball(t.factor.value);
    sum.value += t.coefficient * t.factor.value;
    sum.error += abs(t.coefficient) * t.factor.error;
    magnitude += abs(t.coefficient) * (t.magnitude + t.factor.error);
  }
  return rounded(sum, arithmetic, term_roundings, magnitude);
}

// (1 + cos) / 2 or the cosine itself.
template <class T>
Term<T> content_term(double coefficient, const Ball<T>& cosine, bool raw) {
  using std::abs;
  if (raw) return term(coefficient, cosine);
  const T half = T(0.5);
  return {T(coefficient),
          {half * (1 + cosine.value), half * cosine.error},
          half * (1 + abs(cosine.value))};
}

double largest_of(std::span<const double> x) {
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::abs(v));
  return largest;
}
bool any_below(std::span<const double> x, double normal) {
  return std::ranges::any_of(x, [&](double v) { return v != 0 && std::abs(v) < normal; });
}

// What tensor cores cut beyond their share of the sum: they align subnormal operands as if they
// were as large as the smallest normal number.
double subnormal_cut(const Accumulation& mma, std::span<const double> x, std::span<const double> y,
                     DType storage) {
  const double normal = std::ldexp(1.0, format_of(storage).min_exponent);
  if (!any_below(x, normal) && !any_below(y, normal)) return 0;
  const double aligned = normal * std::max({normal, largest_of(x), largest_of(y)});
  const double steps = std::ceil(static_cast<double>(x.size()) / mma.step);
  return steps * (mma.step + 1) * std::ldexp(aligned, -mma.fraction_bits);
}

// The hidden part of a gate, of a sum that may have started from the bias.
template <class T>
Ball<T> hidden_gate(std::span<const double> hidden, std::span<const double> gate_weight,
                    double bias, const NumericMode& mode, Arithmetic arithmetic) {
  const auto exact = dot<T>(hidden, gate_weight);
  const T magnitude = exact.magnitude + T(std::abs(bias));
  auto result = rounded(Ball<T>{exact.value, T(0)}, arithmetic,
                        static_cast<double>(hidden.size() + 1), magnitude);
  if (!arithmetic.rounds || mode.storage == DType::f32 || exact.magnitude == 0) return result;
  const Accumulation mma = mma_f16_bf16();
  const auto channels = static_cast<std::int64_t>(hidden.size());
  result.error += magnitude * T(dot_error(mma, channels, 0)) +
                  T(subnormal_cut(mma, hidden, gate_weight, mode.storage));
  return result;
}

template <class T>
struct SetWeights {
  const PoolingInputs& in;
  std::int64_t set;
  Arithmetic arithmetic;

  std::int64_t absent() const { return in.groups[static_cast<std::size_t>(set)].absent; }
  std::vector<Ball<T>> none() const {
    return std::vector<Ball<T>>(static_cast<std::size_t>(in.index_kpool));
  }

  std::vector<Ball<T>> operator()(const GivenWeights& w) const {
    std::vector<Ball<T>> result;
    for (const double x : row_of(w.pool_weights, set)) result.push_back({T(x), T(0)});
    return result;
  }

  std::vector<Ball<T>> operator()(const RoleMatrix& w) const {
    std::vector<T> scores;
    for (const double x : row_of(w.pool_matrix, set)) scores.push_back(T(x));
    std::vector<Ball<T>> result(scores.size());
    softmax<T>(scores, T(0), arithmetic, result);
    return result;
  }

  std::vector<Ball<T>> operator()(const AdditiveTerms& w) const {
    auto result = none();
    const auto content = CosineParts<T>(in, w.queries, set, arithmetic).cosines;
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const std::int64_t at = set * in.index_kpool + i;
      const Term<T> terms[] = {
          term(w.alpha, position_of<T>(w, at, arithmetic)),
          content_term(w.beta, content[static_cast<std::size_t>(i - absent())], w.raw_cosine),
          term(w.gamma, age_of<T>(w, at, arithmetic))};
      result[static_cast<std::size_t>(i)] = sum_of<T>(terms, arithmetic);
    }
    return result;
  }

  std::vector<Ball<T>> operator()(const GateOperands& w) const {
    auto result = none();
    const std::int64_t head = set % in.heads;
    const double bias = w.gate_bias.at(head);
    const auto hidden = row_of(w.hidden_states, set / in.heads);
    const auto gate_weight = row_of(w.gate_weight, head), vectors = gather(in, in.vectors, set);
    const std::span<const double> weights = gate_weight, all = vectors;
    const auto of_vector = weights.subspan(hidden.size());
    const auto gate =
        hidden_gate<T>(hidden, weights.first(hidden.size()), bias, in.mode, arithmetic);
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const auto first = static_cast<std::size_t>((i - absent()) * in.head_dim);
      const auto v = dot<T>(all.subspan(first, of_vector.size()), of_vector);
      const T magnitude = v.magnitude + gate.magnitude() + T(std::abs(bias));
      const Ball<T> argument{gate.value + v.value + T(bias), gate.error};
      const double sums = static_cast<double>(in.head_dim + 2);
      result[static_cast<std::size_t>(i)] =
          gate.open() ? open_ball(T(0.5))
                      : sigmoid(rounded(argument, arithmetic, sums, magnitude), arithmetic);
    }
    return result;
  }

  std::vector<Ball<T>> operator()(const AccessTerms& w) const {
    auto result = none();
    const auto content = CosineParts<T>(in, w.queries, set, arithmetic).cosines;
    const double accesses = accesses_of(in, w, set);
    for (std::int64_t i = absent(); i < in.index_kpool; ++i) {
      const Term<T> terms[] = {
          term(w.mix[0], access_term<T>(in, w, set * in.index_kpool + i, accesses, arithmetic)),
          term(w.mix[1], Ball<T>{T(w.position_terms.at(i)), T(0)}),
          content_term(w.mix[2], content[static_cast<std::size_t>(i - absent())], false)};
      result[static_cast<std::size_t>(i)] = sum_of<T>(terms, arithmetic);
    }
    return result;
  }

  std::vector<Ball<T>> operator()(const ChannelScores& w) const {
    const auto dim = static_cast<std::size_t>(in.head_dim), m = none().size();
    const auto first = static_cast<std::size_t>(absent());
    const auto gates = gather(in, w.gate_scores, set);
    std::vector<Ball<T>> result(m * dim), channel(m - first);
    std::vector<T> scores(m - first);
    for (std::size_t c = 0; c < dim; ++c) {
      const T score_error = channel_scores(w, gates, c, scores);
      const bool overflows = *std::ranges::max_element(scores) == HUGE_VAL;
      if (!overflows) softmax<T>(scores, score_error, arithmetic, channel);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        result[(first + i) * dim + c] = overflows ? open_ball(T(0.5)) : channel[i];
      }
    }
    return result;
  }

  // Gate score + bias: one rounding, so one answer. Returns the error of T in the exact sum.
  T channel_scores(const ChannelScores& w, std::span<const double> gates, std::size_t channel,
                   std::span<T> scores) const {
    const auto dim = static_cast<std::size_t>(in.head_dim);
    bool any = false;
    double largest = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double gate = gates[i * dim + channel];
      const double bias =
          w.position_bias.at((absent() + static_cast<std::int64_t>(i)) * in.head_dim +
                             static_cast<std::int64_t>(channel));
      scores[i] = T(gate) + T(bias);
      if (arithmetic.rounds) scores[i] = round_f32(scores[i]);
      any = any || scores[i] > -std::numeric_limits<T>::infinity();
      if (gate > -HUGE_VAL) largest = std::max(largest, std::abs(gate) + std::abs(bias));
    }
    if (!any) {
      throw ConfigError(fmt::format(
          "gate_scores: every score of group {}, channel {} is -inf: its weights are 0 / 0", set,
          channel));
    }
    return arithmetic.rounds ? T(0) : own(1, T(largest));
  }

  std::vector<Ball<T>> operator()(const NoWeights&) const {
    throw ConfigError("policy block_max has no pool weights: it takes the largest score");
  }
};

}  // namespace

template <class T>
std::vector<Ball<T>> set_weights(const PoolingInputs& inputs, std::int64_t set,
                                 Arithmetic arithmetic) {
  return std::visit(SetWeights<T>{inputs, set, arithmetic}, inputs.weights);
}

template std::vector<Ball<double>> set_weights<double>(const PoolingInputs&, std::int64_t,
                                                       Arithmetic);
template std::vector<Ball<Quad>> set_weights<Quad>(const PoolingInputs&, std::int64_t, Arithmetic);

}  // namespace indexpool::reference
