// A group is a set: the order of its vectors must not matter when their operands go along.
#include <algorithm>
#include <utility>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::policy {
namespace {

// Elements of a row; a tensor without rows has them too.
std::int64_t row_width(const Tensor& tensor) {
  return element_count({tensor.shape().begin() + 1, tensor.shape().end()});
}

// [rows, m, rest]: chosen rows, the second axis in the opposite order.
Tensor turned(const Tensor& tensor, std::int64_t m, const std::vector<std::size_t>& rows) {
  const std::int64_t width = row_width(tensor), rest = width / m;
  Shape shape = tensor.shape();
  shape[0] = static_cast<std::int64_t>(rows.size());
  Tensor result(tensor.dtype(), shape);
  std::int64_t to = 0;
  for (const std::size_t row : rows) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t c = 0; c < rest; ++c, ++to) {
        result.set(to, tensor.at(static_cast<std::int64_t>(row) * width + (m - 1 - i) * rest + c));
      }
    }
  }
  return result;
}

// A table of all vectors of a group, [m, rest].
Tensor turned_table(const Tensor& tensor, std::int64_t m) {
  return turned(tensor.reshaped({1, m, tensor.size() / m}), m, {0}).reshaped(tensor.shape());
}

Tensor chosen(const Tensor& tensor, const std::vector<std::size_t>& rows) {
  const std::int64_t width = row_width(tensor);
  return turned(tensor.reshaped({tensor.dim(0), 1, width}), 1, rows)
      .reshaped({static_cast<std::int64_t>(rows.size()), width});
}

std::vector<std::size_t> all_rows(std::int64_t count) {
  std::vector<std::size_t> rows(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  return rows;
}

struct Turn {
  const PoolingInputs& in;
  const std::vector<std::size_t>& kept;  // groups
  std::int64_t m() const { return in.index_kpool; }

  // Shared sets stay where they are, a group's own go with it.
  std::vector<std::size_t> sets() const {
    return weight_sets(in) == in.group_count() ? kept : all_rows(weight_sets(in));
  }
  WeightOperands operator()(const GivenWeights& w) const {
    return GivenWeights{turned(w.pool_weights, m(), sets())};
  }
  WeightOperands operator()(const RoleMatrix& w) const {
    return RoleMatrix{turned(w.pool_matrix, m(), all_rows(weight_sets(in)))};
  }
  WeightOperands operator()(const AdditiveTerms& w) const {
    AdditiveTerms result = w;
    result.queries = chosen(w.queries, kept);
    result.distances = turned(w.distances, m(), kept);
    result.ages = turned(w.ages, m(), kept);
    return result;
  }
  WeightOperands operator()(const GateOperands& w) const { return w; }
  WeightOperands operator()(const AccessTerms& w) const {
    AccessTerms result = w;
    result.queries = chosen(w.queries, kept);
    result.accesses = turned(w.accesses, m(), kept);
    result.groups_accessed = turned(w.groups_accessed, m(), kept);
    result.position_terms = turned_table(w.position_terms, m());
    return result;
  }
  WeightOperands operator()(const ChannelScores& w) const {
    return ChannelScores{w.gate_scores, turned_table(w.position_bias, m())};
  }
  WeightOperands operator()(const NoWeights& w) const { return w; }
};

}  // namespace

Reversed reversed(const PoolingInputs& inputs) {
  Reversed result{inputs, {}};
  for (std::size_t g = 0; g < inputs.groups.size(); ++g) {
    if (inputs.groups[g].absent == 0) result.kept.push_back(g);
  }
  const bool own_sets = weight_sets(inputs) == inputs.group_count();
  result.inputs.groups.clear();
  for (const std::size_t g : result.kept) {
    VectorGroup group = inputs.groups[g];
    if (own_sets) group.weight_set = static_cast<std::int32_t>(result.inputs.groups.size());
    result.inputs.groups.push_back(group);
  }
  std::ranges::reverse(result.inputs.offsets);
  result.inputs.weights = std::visit(Turn{inputs, result.kept}, inputs.weights);
  if (!inputs.norm_rope.rope.empty())
    result.inputs.norm_rope.rope = chosen(inputs.norm_rope.rope, result.kept);
  return result;
}

std::vector<float> reversed(const PoolingInputs& inputs, const std::vector<float>& pool_weights,
                            const std::vector<std::size_t>& kept) {
  const std::int64_t sets = weight_sets(inputs), m = inputs.index_kpool;
  if (sets == 0) return {};
  const std::int64_t rest = static_cast<std::int64_t>(pool_weights.size()) / sets / m;
  Tensor tensor(DType::f32, {sets, m, rest});
  std::ranges::copy(pool_weights, tensor.as<float>().begin());
  const Tensor result = turned(tensor, m, sets == inputs.group_count() ? kept : all_rows(sets));
  const auto values = std::as_const(result).as<float>();
  return {values.begin(), values.end()};
}

}  // namespace indexpool::verify::policy
