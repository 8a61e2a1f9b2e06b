#include "indexpool/model/pooling.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

void require_tensor(const char* name, const Tensor& tensor, DType dtype, const Shape& shape) {
  if (tensor.shape() == shape && (tensor.empty() || tensor.dtype() == dtype)) return;
  throw ConfigError(fmt::format("{}: {} {}, expected {} {}", name, info(tensor.dtype()).name,
                                to_string(tensor.shape()), info(dtype).name, to_string(shape)));
}

struct Requirements {
  const PoolingInputs& in;
  std::int64_t groups() const { return in.group_count(); }
  std::int64_t m() const { return in.index_kpool; }

  void queries(const Tensor& tensor) const {
    require_tensor("queries", tensor, in.mode.storage, {groups(), in.head_dim});
  }
  void operator()(const GivenWeights& w) const {
    require_tensor("pool_weights", w.pool_weights, DType::f32, {weight_sets(in), m()});
  }
  void operator()(const RoleMatrix& w) const {
    require_tensor("pool_matrix", w.pool_matrix, DType::f32, {weight_sets(in), m()});
  }
  void operator()(const AdditiveTerms& w) const {
    queries(w.queries);
    require_tensor("distances", w.distances, DType::f32, {groups(), m()});
    require_tensor("ages", w.ages, DType::f32, {groups(), m()});
  }
  void operator()(const GateOperands& w) const {
    const std::int64_t hidden = w.hidden_states.shape().size() == 2 ? w.hidden_states.dim(1) : 0;
    const std::int64_t tokens = (groups() + in.heads - 1) / in.heads;
    require_tensor("hidden_states", w.hidden_states, in.mode.storage, {tokens, hidden});
    if (hidden % 16 != 0 || hidden < 16)
      throw ConfigError(
          fmt::format("hidden_states: {} channels, expected a multiple of 16", hidden));
    require_tensor("gate_weight", w.gate_weight, in.mode.storage, {in.heads, hidden + in.head_dim});
    require_tensor("gate_bias", w.gate_bias, DType::f32, {in.heads});
  }
  void operator()(const AccessTerms& w) const {
    queries(w.queries);
    require_tensor("accesses", w.accesses, DType::i32, {groups(), m()});
    require_tensor("groups_accessed", w.groups_accessed, DType::i32, {groups(), m()});
    require_tensor("position_terms", w.position_terms, DType::f32, {m()});
  }
  void operator()(const ChannelScores& w) const {
    require_tensor("gate_scores", w.gate_scores, in.mode.storage, in.vectors.shape());
    require_tensor("position_bias", w.position_bias, DType::f32, {m(), in.head_dim});
  }
  void operator()(const NoWeights&) const {
    throw ConfigError("policy block_max pools scores (BlockMaxInputs), not vectors");
  }
};

void require_rows(const PoolingInputs& in) {
  const std::int64_t rows = in.vectors.empty() ? 0 : in.vectors.dim(0), sets = weight_sets(in);
  for (std::size_t g = 0; g < in.groups.size(); ++g) {
    const VectorGroup& group = in.groups[g];
    if (group.absent < 0 || group.absent >= in.index_kpool)
      throw ConfigError(fmt::format("groups/{}/absent: found {}, expected 0 to {}", g, group.absent,
                                    in.index_kpool - 1));
    if (group.weight_set < 0 || group.weight_set >= sets)
      throw ConfigError(fmt::format("groups/{}/weight_set: found {}, expected 0 to {}", g,
                                    group.weight_set, sets - 1));
    for (std::size_t i = static_cast<std::size_t>(group.absent); i < in.offsets.size(); ++i) {
      const std::int64_t row = group.first_row + in.offsets[i];
      if (row < 0 || row >= rows)
        throw ConfigError(
            fmt::format("groups/{}: vector {} is row {}, expected 0 to {}", g, i, row, rows - 1));
    }
  }
}

}  // namespace

std::int64_t weight_sets(const PoolingInputs& inputs) {
  const auto rows = [](const Tensor& tensor) {
    return tensor.shape().empty() ? std::int64_t{0} : tensor.dim(0);
  };
  if (const auto* given = std::get_if<GivenWeights>(&inputs.weights))
    return rows(given->pool_weights);
  if (const auto* roles = std::get_if<RoleMatrix>(&inputs.weights)) return rows(roles->pool_matrix);
  return inputs.group_count();
}

void validate(const PoolingInputs& inputs) {
  const std::int64_t rows = inputs.vectors.empty() ? 0 : inputs.vectors.dim(0);
  require_tensor("vectors", inputs.vectors, inputs.mode.storage, {rows, inputs.head_dim});
  if (static_cast<std::int64_t>(inputs.offsets.size()) != inputs.index_kpool)
    throw ConfigError(fmt::format("offsets: found {}, expected one for each of {} vectors",
                                  inputs.offsets.size(), inputs.index_kpool));
  std::visit(Requirements{inputs}, inputs.weights);
  require_rows(inputs);
  const NormRope& norm = inputs.norm_rope;
  if (norm.norm_weight.empty()) return;
  require_tensor("norm_weight", norm.norm_weight, DType::f32, {inputs.head_dim});
  if (norm.rope_dims < 0 || norm.rope_dims > inputs.head_dim || norm.rope_dims % 8 != 0)
    throw ConfigError(fmt::format("rope_dims: found {}, expected a multiple of 8 up to {}",
                                  norm.rope_dims, inputs.head_dim));
  if (norm.rope_dims > 0)
    require_tensor("rope", norm.rope, DType::f32, {inputs.group_count(), norm.rope_dims});
}

}  // namespace indexpool
