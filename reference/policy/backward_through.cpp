// From the gradients of stored weights back to what the weights are made of.
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/policy/store.hpp"
#include "indexpool/reference/policy/terms.hpp"
#include "indexpool/reference/policy_backward.hpp"

namespace indexpool::reference {
namespace {

std::size_t place(std::int64_t x) { return static_cast<std::size_t>(x); }

template <class T>
Bounded row_sums_in(std::span<const float> values, std::int64_t width,
                    std::span<const std::int32_t> sum_of_row, std::int64_t sums) {
  std::vector<Terms<T>> terms(place(sums * width));
  for (std::size_t j = 0; j < sum_of_row.size(); ++j) {
    const std::int64_t sum = sum_of_row[j];
    if (sum < 0 || sum >= sums)
      throw ConfigError(fmt::format("row {} belongs to sum {} of {}", j, sum, sums));
    for (std::size_t c = 0; c < place(width); ++c)
      terms[place(sum * width) + c].add(stored_ball<T>(values[j * place(width) + c]), T(1));
  }
  Bounded result(Shape{sums, width});
  for (std::size_t k = 0; k < terms.size(); ++k)
    store(result, k, terms[k].sum(in_binary32, terms[k].count > 0 ? -1 : 0));
  return result;
}

// Element i of a row of n, `stride` apart.
template <class T>
Ball<T> softmax_gradient(const Ball<T>& w, const Ball<T>& b, const Terms<T>& mean) {
  using std::abs;
  const T value = w.value * (b.value - mean.value);
  if (w.open() || b.open() || mean.open) return open_ball(value);
  const T inner = abs(b.value) + mean.magnitude;
  if (may_overflow_f32(inner)) return open_ball(value);
  const T underflow = T(in_binary32.absolute(mean.count + 2)) * (1 + abs(w.value));
  if (w.value == 0) return {T(0), T(0)};
  return rounded(Ball<T>{value, underflow}, in_binary32, mean.count + 3,
                 T(abs(w.value) * inner + underflow));
}

template <class T>
Bounded softmax_in(std::span<const float> weights, std::span<const float> grad, std::size_t m,
                   std::size_t stride) {
  Bounded result(Shape{static_cast<std::int64_t>(weights.size())});
  for (std::size_t first = 0; first < weights.size(); first += m * stride) {
    for (std::size_t c = 0; c < stride; ++c) {
      const auto at = [&](std::size_t i) { return first + i * stride + c; };
      Terms<T> mean;
      for (std::size_t i = 0; i < m; ++i) {
        const Ball<T> b = stored_ball<T>(grad[at(i)]);
        mean.add(b, T(stored_ball<T>(weights[at(i)]).value));
        mean.open = mean.open || !std::isfinite(weights[at(i)]);
      }
      mean.open = mean.open || may_overflow_f32(mean.magnitude);
      for (std::size_t i = 0; i < m; ++i)
        store(result, at(i),
              softmax_gradient(stored_ball<T>(weights[at(i)]), stored_ball<T>(grad[at(i)]), mean));
    }
  }
  return result;
}

// dz = b w (1 - w) of a stored weight in [0, 1].
template <class T>
Ball<T> gate_gradient(float weight, float grad) {
  const Ball<T> w = stored_ball<T>(weight), b = stored_ball<T>(grad);
  const T value = b.value * w.value * (1 - w.value);
  if (w.open() || b.open()) return open_ball(value);
  return rounded(Ball<T>{value, T(0)}, in_binary32, 3);
}

template <class T>
class Gates {
 public:
  Gates(const PoolingInputs& in, const GateOperands& gate, std::span<const float> weights,
        std::span<const float> grad)
      : in_(in), gate_(gate) {
    for (std::int64_t g = 0; g < in.group_count(); ++g) {
      const std::int64_t absent = in.groups[place(g)].absent;
      for (std::int64_t i = 0; i < in.index_kpool; ++i) {
        const std::size_t at = place(g * in.index_kpool + i);
        dz_.push_back(i < absent ? Ball<T>{} : gate_gradient<T>(weights[at], grad[at]));
      }
    }
  }

  Bounded vectors(std::span<const float> held) const {
    Bounded result(Shape{in_.group_count(), in_.index_kpool, in_.head_dim});
    for (std::int64_t g = 0; g < in_.group_count(); ++g) {
      for (std::int64_t i = in_.groups[place(g)].absent; i < in_.index_kpool; ++i) {
        const std::int64_t slot = g * in_.index_kpool + i;
        for (std::int64_t c = 0; c < in_.head_dim; ++c) {
          Terms<T> sum;
          const std::size_t at = place(slot * in_.head_dim + c);
          sum.add(stored_ball<T>(held[at]), T(1));
          sum.add(dz_[place(slot)], gate(g % in_.heads, hidden() + c));
          store(result, at, sum.sum(in_binary32));
        }
      }
    }
    return result;
  }
  Bounded hidden_states() const {
    Bounded result(gate_.hidden_states.shape());
    const std::int64_t tokens = gate_.hidden_states.dim(0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t x = 0; x < hidden(); ++x) {
        Terms<T> sum;
        for_token(t,
                  [&](std::int64_t g, const Ball<T>& dz) { sum.add(dz, gate(g % in_.heads, x)); });
        store(result, place(t * hidden() + x), sum.sum(in_binary32));
      }
    }
    return result;
  }
  Bounded gate_weight() const {
    Bounded result(gate_.gate_weight.shape());
    std::vector<Terms<T>> sums(result.value.size());
    const std::int64_t width = hidden() + in_.head_dim;
    for (std::int64_t g = 0; g < in_.group_count(); ++g) {
      const std::int64_t first = g % in_.heads * width, state = g / in_.heads * hidden();
      for (std::int64_t i = in_.groups[place(g)].absent; i < in_.index_kpool; ++i) {
        const Ball<T>& dz = dz_[place(g * in_.index_kpool + i)];
        for (std::int64_t x = 0; x < hidden(); ++x)
          sums[place(first + x)].add(dz, T(gate_.hidden_states.at(state + x)));
        const std::int64_t row = in_.groups[place(g)].first_row + in_.offsets[place(i)];
        for (std::int64_t c = 0; c < in_.head_dim; ++c)
          sums[place(first + hidden() + c)].add(dz, T(in_.vectors.at(row * in_.head_dim + c)));
      }
    }
    for (std::size_t k = 0; k < sums.size(); ++k) store(result, k, sums[k].sum(in_binary32));
    return result;
  }
  Bounded gate_bias() const {
    Bounded result(gate_.gate_bias.shape());
    std::vector<Terms<T>> sums(result.value.size());
    for (std::size_t k = 0; k < dz_.size(); ++k) {
      const auto g = static_cast<std::int64_t>(k) / in_.index_kpool;
      sums[place(g % in_.heads)].add(dz_[k], T(1));
    }
    for (std::size_t h = 0; h < sums.size(); ++h) store(result, h, sums[h].sum(in_binary32));
    return result;
  }

 private:
  std::int64_t hidden() const { return gate_.hidden_states.dim(1); }
  T gate(std::int64_t head, std::int64_t column) const {
    return T(gate_.gate_weight.at(head * (hidden() + in_.head_dim) + column));
  }
  template <class F>
  void for_token(std::int64_t t, const F& f) const {
    for (std::int64_t g = t * in_.heads; g < std::min((t + 1) * in_.heads, in_.group_count()); ++g)
      for (std::int64_t i = 0; i < in_.index_kpool; ++i) f(g, dz_[place(g * in_.index_kpool + i)]);
  }

  const PoolingInputs& in_;
  const GateOperands& gate_;
  std::vector<Ball<T>> dz_;  // [G, m]
};

template <class T>
GateGradients gates_in(const PoolingInputs& in, std::span<const float> weights,
                       std::span<const float> grad, std::span<const float> held) {
  const Gates<T> gates(in, std::get<GateOperands>(in.weights), weights, grad);
  return {gates.vectors(held), gates.hidden_states(), gates.gate_weight(), gates.gate_bias()};
}

}  // namespace

Bounded row_sums(std::span<const float> values, std::int64_t width,
                 std::span<const std::int32_t> sum_of_row, std::int64_t sums, Precision precision) {
  check_size("rows to sum", values.size(), std::ssize(sum_of_row) * width);
  return precision == Precision::binary64 ? row_sums_in<double>(values, width, sum_of_row, sums)
                                          : row_sums_in<Quad>(values, width, sum_of_row, sums);
}

Bounded through_softmax(std::span<const float> stored_weights, std::span<const float> grad_weights,
                        std::int64_t m, std::int64_t stride, Precision precision) {
  const std::int64_t row = m * stride;
  check_size("gradients of pool weights", grad_weights.size(), std::ssize(stored_weights));
  check_size("stored pool weights", stored_weights.size(), std::ssize(stored_weights) / row * row);
  return precision == Precision::binary64
             ? softmax_in<double>(stored_weights, grad_weights, place(m), place(stride))
             : softmax_in<Quad>(stored_weights, grad_weights, place(m), place(stride));
}

GateGradients through_gates(const PoolingInputs& inputs, std::span<const float> stored_weights,
                            std::span<const float> grad_weights,
                            std::span<const float> held_vectors, Precision precision) {
  check_operands(inputs);
  if (!std::holds_alternative<GateOperands>(inputs.weights))
    throw ConfigError("policy " + inputs.policy + " has no gate");
  const std::int64_t weights = inputs.group_count() * inputs.index_kpool;
  check_size("stored pool weights", stored_weights.size(), weights);
  check_size("gradients of pool weights", grad_weights.size(), weights);
  check_size("gradients of vectors", held_vectors.size(), weights * inputs.head_dim);
  return precision == Precision::binary64
             ? gates_in<double>(inputs, stored_weights, grad_weights, held_vectors)
             : gates_in<Quad>(inputs, stored_weights, grad_weights, held_vectors);
}

}  // namespace indexpool::reference
