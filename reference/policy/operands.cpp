#include "indexpool/reference/policy/operands.hpp"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/error.hpp"

namespace indexpool::reference {
namespace {

std::string place(const Tensor& tensor, std::int64_t flat) {
  std::vector<std::int64_t> index(tensor.shape().size());
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = flat % tensor.dim(axis);
    flat /= tensor.dim(axis);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

[[noreturn]] void refuse(const char* name, const Tensor& tensor, std::int64_t flat,
                         const char* expected) {
  throw ConfigError(fmt::format("{}: {} at {}, expected {}", name, tensor.at(flat),
                                place(tensor, flat), expected));
}

template <class Accept>
void require_all(const char* name, const Tensor& tensor, const char* expected,
                 const Accept& accept) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (!accept(tensor.at(i))) refuse(name, tensor, i, expected);
  }
}
void require_numbers(const char* name, const Tensor& tensor) {
  require_all(name, tensor, "a number", [](double x) { return std::isfinite(x); });
}
void require_not_negative(const char* name, const Tensor& tensor) {
  require_all(name, tensor, "a number of at least 0",
              [](double x) { return std::isfinite(x) && x >= 0; });
}
void require_number(const char* name, double x) {
  if (!std::isfinite(x)) throw ConfigError(fmt::format("{}: {}, expected a number", name, x));
}

// Rows that some group reads.
template <class Accept>
void require_read_rows(const PoolingInputs& in, const char* name, const Tensor& rows,
                       const char* expected, const Accept& accept) {
  for (const VectorGroup& group : in.groups) {
    for (auto i = static_cast<std::size_t>(group.absent); i < in.offsets.size(); ++i) {
      const std::int64_t first = (group.first_row + in.offsets[i]) * in.head_dim;
      for (std::int64_t c = 0; c < in.head_dim; ++c) {
        if (!accept(rows.at(first + c))) refuse(name, rows, first + c, expected);
      }
    }
  }
}

// Squares and reciprocals of such lengths are normal numbers in binary32.
void require_length(const char* name, double x) {
  if (x >= 0x1p-30 && x <= 0x1p30) return;
  throw ConfigError(fmt::format("{}: {}, expected 2^-30 to 2^30", name, x));
}

struct OperandCheck {
  const PoolingInputs& in;

  void operator()(const GivenWeights& w) const { require_numbers("pool_weights", w.pool_weights); }
  void operator()(const RoleMatrix& w) const { require_numbers("pool_matrix", w.pool_matrix); }
  void operator()(const AdditiveTerms& w) const {
    require_numbers("queries", w.queries);
    require_numbers("distances", w.distances);
    require_not_negative("ages", w.ages);
    require_number("alpha", w.alpha);
    require_number("beta", w.beta);
    require_number("gamma", w.gamma);
    require_length("sigma", w.sigma);
    require_length("tau", w.tau);
  }
  void operator()(const GateOperands& w) const {
    require_numbers("hidden_states", w.hidden_states);
    require_numbers("gate_weight", w.gate_weight);
    require_numbers("gate_bias", w.gate_bias);
  }
  void operator()(const AccessTerms& w) const {
    require_numbers("queries", w.queries);
    require_all("accesses", w.accesses, "0 to 2^24",
                [](double x) { return x >= 0 && x <= 0x1p24; });
    require_not_negative("groups_accessed", w.groups_accessed);
    require_not_negative("position_terms", w.position_terms);
    for (const float share : w.mix) require_number("mix", share);
    if (w.all_groups < 0)
      throw ConfigError(fmt::format("all_groups: {}, expected at least 0", w.all_groups));
  }
  void operator()(const ChannelScores& w) const {
    require_read_rows(in, "gate_scores", w.gate_scores, "a number or -inf",
                      [](double x) { return std::isfinite(x) || x == -HUGE_VAL; });
    require_numbers("position_bias", w.position_bias);
  }
  void operator()(const NoWeights&) const {}
};

WeightRule rule_of(const WeightOperands& weights) {
  static constexpr WeightRule rules[] = {
      WeightRule::given, WeightRule::role_softmax,    WeightRule::additive, WeightRule::gated,
      WeightRule::tfidf, WeightRule::channel_softmax, WeightRule::maximum};
  static_assert(std::size(rules) == std::variant_size_v<WeightOperands>);
  return rules[weights.index()];
}

void check_policy(const PoolingInputs& in) {
  const PolicyInfo& policy = find_policy(in.policy);
  if (rule_of(in.weights) != policy.rule) {
    throw ConfigError(
        fmt::format("policy {}: the operands are those of another rule of weights (alternative {} "
                    "of WeightOperands); expected those of: {}",
                    policy.name, in.weights.index(), policy.formula));
  }
  const bool normed = !in.norm_rope.norm_weight.empty();
  if (normed != (policy.grouping == Grouping::windows)) {
    throw ConfigError(fmt::format("policy {}: norm_weight is {}, expected {}", policy.name,
                                  normed ? "set" : "empty", normed ? "none" : "[head_dim]"));
  }
}

}  // namespace

void check_operands(const PoolingInputs& inputs) {
  if (inputs.index_kpool < 1 || inputs.head_dim < 1 || inputs.heads < 1) {
    throw ConfigError(
        fmt::format("index_kpool {}, head_dim {}, heads {}: expected at least 1 of each",
                    inputs.index_kpool, inputs.head_dim, inputs.heads));
  }
  check_policy(inputs);
  validate(inputs);
  require_read_rows(inputs, "vectors", inputs.vectors, "a number",
                    [](double x) { return std::isfinite(x); });
  std::visit(OperandCheck{inputs}, inputs.weights);
  if (inputs.norm_rope.norm_weight.empty()) return;
  require_numbers("norm_weight", inputs.norm_rope.norm_weight);
  require_numbers("rope", inputs.norm_rope.rope);
  require_number("eps", inputs.norm_rope.eps);
  if (inputs.norm_rope.eps < 0)
    throw ConfigError(fmt::format("eps: {}, expected at least 0", inputs.norm_rope.eps));
}

void check_size(const char* what, std::size_t found, std::int64_t expected) {
  if (static_cast<std::int64_t>(found) != expected)
    throw ConfigError(fmt::format("{}: found {} values, expected {}", what, found, expected));
}

std::vector<double> row_of(const Tensor& tensor, std::int64_t row) {
  const std::int64_t columns = tensor.shape().back();
  std::vector<double> result(static_cast<std::size_t>(columns));
  for (std::int64_t c = 0; c < columns; ++c) {
    result[static_cast<std::size_t>(c)] = tensor.at(row * columns + c);
  }
  return result;
}

std::vector<double> gather(const PoolingInputs& inputs, const Tensor& rows, std::int64_t group) {
  const VectorGroup& where = inputs.groups[static_cast<std::size_t>(group)];
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(present(inputs, group) * inputs.head_dim));
  for (auto i = static_cast<std::size_t>(where.absent); i < inputs.offsets.size(); ++i) {
    const std::int64_t first = (where.first_row + inputs.offsets[i]) * inputs.head_dim;
    for (std::int64_t c = 0; c < inputs.head_dim; ++c) result.push_back(rows.at(first + c));
  }
  return result;
}

}  // namespace indexpool::reference
