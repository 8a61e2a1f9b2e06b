#include <bit>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "indexpool/kernels/backward/plan.hpp"
#include "indexpool/reference/policy_backward.hpp"
#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/policy/backward.hpp"

namespace indexpool::verify::policy {
namespace {

// Of a few roundings alone, how much of the bound was used says nothing.
double wide_utilisation(double x, double value, double low, double high) {
  constexpr double few = 8 * 0x1p-23;  // at least 8 numbers apart
  return high - low <= few * std::abs(value) ? 0 : utilisation(x, value, low, high);
}

// Index of element `flat` in `shape`, for people.
std::string place_in(const Shape& shape, std::size_t flat) {
  std::string text;
  auto rest = static_cast<std::int64_t>(flat);
  for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k])
    text = fmt::format("{}{}{}", rest % shape[k], text.empty() ? "" : ", ", text);
  return "[" + text + "]";
}

Check check_bound(const char* gradient, std::span<const float> found,
                  const reference::Bounded& expected) {
  Tally tally(fmt::format("bound_{}", gradient));
  std::int64_t open = 0;
  if (std::ssize(found) != expected.size()) {
    tally.compare(false, [&] {
      return fmt::format("{} values, expected {}", found.size(), expected.size());
    });
    return std::move(tally).finish();
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double x = found[k], low = expected.low[k], high = expected.high[k];
    open += reference::is_open(low, high);
    tally.compare(reference::admits(low, high, x),
                  wide_utilisation(x, expected.value[k], low, high), [&] {
                    return fmt::format("{}: {:.9g}, expected {:.9g} to {:.9g}",
                                       place_in(expected.shape, k), x, low, high);
                  });
  }
  tally.excuse(open);
  return std::move(tally).finish();
}

// Of [heads, X + D] the columns [first, first + width).
reference::Bounded columns(const reference::Bounded& from, std::int64_t first, std::int64_t width) {
  const std::int64_t rows = from.shape[0], stride = from.shape[1];
  reference::Bounded result(Shape{rows, width});
  for (std::int64_t k = 0; k < rows * width; ++k) {
    const auto at = static_cast<std::size_t>(k / width * stride + first + k % width),
               to = static_cast<std::size_t>(k);
    result.value[to] = from.value[at];
    result.low[to] = from.low[at];
    result.high[to] = from.high[at];
  }
  return result;
}

std::vector<std::int32_t> weight_sets_of(const PoolingInputs& inputs) {
  std::vector<std::int32_t> sets;
  for (const VectorGroup& group : inputs.groups) sets.push_back(group.weight_set);
  return sets;
}

void check_gate(const PoolingInputs& in, const std::vector<float>& weights,
                const BackwardOutput& found, std::vector<Check>& checks) {
  const auto expected =
      reference::through_gates(in, weights, found.pool_weights, found.held_vectors);
  const std::int64_t hidden = std::get<GateOperands>(in.weights).hidden_states.dim(1);
  checks.push_back(check_bound("vectors", found.vectors, expected.vectors));
  checks.push_back(check_bound("hidden_states", found.hidden_states, expected.hidden_states));
  checks.push_back(
      check_bound("gate_hidden", found.gate_hidden, columns(expected.gate_weight, 0, hidden)));
  checks.push_back(check_bound("gate_vectors", found.gate_vectors,
                               columns(expected.gate_weight, hidden, in.head_dim)));
  checks.push_back(check_bound("gate_bias", found.gate_bias, expected.gate_bias));
}

void check_terms(const PoolingInputs& in, const BackwardOutput& found, std::vector<Check>& checks) {
  const auto cosines = reference::through_cosines(in, found.pool_weights, found.held_vectors);
  checks.push_back(check_bound("vectors", found.vectors, cosines.vectors));
  checks.push_back(check_bound("queries", found.queries, cosines.queries));
  checks.push_back(check_bound("cosines", found.cosines, cosines.cosines));
  const auto rows = reference::through_terms(in, found.pool_weights, found.cosines,
                                             kernels::groups_per_term_row(in));
  const auto one_sum = [](const std::vector<float>& values, std::int64_t width) {
    const auto count = values.size() / static_cast<std::size_t>(width);
    return reference::row_sums(values, width, std::vector<std::int32_t>(count, 0), 1);
  };
  checks.push_back(check_bound("term_rows", found.term_rows, rows.terms));
  checks.push_back(
      check_bound("terms", found.terms, one_sum(found.term_rows, kernels::weight_terms(in))));
  if (!std::holds_alternative<AccessTerms>(in.weights)) return;
  checks.push_back(check_bound("position_rows", found.position_rows, rows.position_terms));
  checks.push_back(check_bound("position_terms", found.position_terms,
                               one_sum(found.position_rows, in.index_kpool)));
}

}  // namespace

std::vector<Check> check_gradients(const PoolingInputs& in, const std::vector<float>& weights,
                                   const std::vector<float>& grad_pooled,
                                   const BackwardOutput& found) {
  const auto held = reference::held_gradients(in, weights, grad_pooled);
  const std::vector<std::int32_t> one(in.groups.size(), 0);
  std::vector<Check> checks = {check_bound("held_vectors", found.held_vectors, held.vectors),
                               check_bound("slot_weights", found.slot_weights, held.pool_weights)};
  if (kernels::shares_weights(in)) {
    const auto sums = reference::row_sums(found.slot_weights, in.index_kpool, weight_sets_of(in),
                                          weight_sets(in));
    checks.push_back(check_bound("pool_weights", found.pool_weights, sums));
  }
  if (std::holds_alternative<RoleMatrix>(in.weights)) {
    auto matrix = reference::through_softmax(weights, found.pool_weights, in.index_kpool, 1);
    matrix.shape = {weight_sets(in), in.index_kpool};
    checks.push_back(check_bound("pool_matrix", found.pool_matrix, matrix));
  }
  if (!in.norm_rope.norm_weight.empty()) {
    checks.push_back(check_bound("norm_rows", found.norm_rows, held.norm_weight));
    checks.push_back(check_bound("norm_weight", found.norm_weight,
                                 reference::row_sums(found.norm_rows, in.head_dim, one, 1)));
  }
  if (in.per_channel()) {
    auto scores =
        reference::through_softmax(weights, found.pool_weights, in.index_kpool, in.head_dim);
    scores.shape = held.vectors.shape;
    const std::int64_t width = in.index_kpool * in.head_dim;
    checks.push_back(check_bound("gate_scores", found.gate_scores, scores));
    checks.push_back(check_bound("position_bias", found.position_bias,
                                 reference::row_sums(found.gate_scores, width, one, 1)));
  }
  if (std::holds_alternative<GateOperands>(in.weights)) check_gate(in, weights, found, checks);
  if (kernels::weight_terms(in) > 0) check_terms(in, found, checks);
  return checks;
}

Check check_clipping(const BackwardOutput& found, const BackwardOutput& clipped) {
  Tally tally("clip");
  std::int64_t outside = 0;
  for (std::size_t k = 0; k < found.pool_weights.size(); ++k) {
    const float whole = found.pool_weights[k], x = clipped.pool_weights[k];
    if (std::isnan(whole)) continue;
    const bool inside = whole >= -1 && whole <= 1;
    outside += !inside;
    const float expected = inside ? whole : std::copysign(1.0F, whole);
    tally.compare(std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(expected), [&] {
      return fmt::format("weight gradient {}: {:.9g} became {:.9g}, expected {:.9g}", k, whole, x,
                         expected);
    });
  }
  tally.note(fmt::format("{} of {} outside [-1, 1]", outside, found.pool_weights.size()));
  return std::move(tally).finish();
}

}  // namespace indexpool::verify::policy
