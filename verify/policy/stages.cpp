// Each operation of a published form as a function from host values to host values, on a target.
#include <deque>

#include "indexpool/kernels/policy/plan.hpp"
#include "indexpool/verify/policy/policy.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::policy {
namespace {

// Operands of a pooling operation on a target, and where they lie. Buffers live as long as the
// object.
class Placed {
 public:
  kernels::PlacedPooling at;

  Placed(kernels::Target& target, const PoolingInputs& inputs) : target_(target) {
    at.vectors = put("vectors", inputs.vectors).data();
    at.groups = put("groups", inputs.groups).as<VectorGroup>();
  }
  template <class T>
  TargetBuffer& put(const char* name, const T& values) {
    return buffers_.emplace_back(upload(target_, name, values));
  }
  TargetBuffer& room(const char* name, std::int64_t bytes) {
    return buffers_.emplace_back(target_, name, bytes);
  }

  // What each rule makes its weights of.
  void operator()(const GivenWeights&) {}
  void operator()(const NoWeights&) {}
  void operator()(const RoleMatrix& roles) {
    at.pool_matrix = put("pool matrix", roles.pool_matrix).as<float>();
  }
  void operator()(const AdditiveTerms& terms) {
    at.queries = put("queries", terms.queries).data();
    at.distances = put("distances", terms.distances).as<float>();
    at.ages = put("ages", terms.ages).as<float>();
  }
  void operator()(const GateOperands& gates) {
    at.hidden_states = put("hidden states", gates.hidden_states).data();
    at.gate_weight = put("gate weight", gates.gate_weight).data();
    at.gate_bias = put("gate bias", gates.gate_bias).as<float>();
  }
  void operator()(const AccessTerms& terms) {
    at.queries = put("queries", terms.queries).data();
    at.accesses = put("accesses", terms.accesses).as<std::int32_t>();
    at.groups_accessed = put("groups accessed", terms.groups_accessed).as<std::int32_t>();
    at.position_terms = put("position terms", terms.position_terms).as<float>();
  }
  void operator()(const ChannelScores& scores) {
    at.gate_scores = put("gate scores", scores.gate_scores).data();
    at.position_bias = put("position bias", scores.position_bias).as<float>();
  }

 private:
  kernels::Target& target_;
  std::deque<TargetBuffer> buffers_;
};

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

}  // namespace

WeightsOutput run_weights(StageContext& context, const PoolingInputs& inputs) {
  WeightsOutput output;
  if (const auto* given = std::get_if<GivenWeights>(&inputs.weights)) {
    output.pool_weights = floats(given->pool_weights);
    return output;
  }
  Placed placed(context.target, inputs);
  std::visit(placed, inputs.weights);
  const TargetBuffer& result = placed.room("pool weights", kernels::pool_weight_count(inputs) * 4);
  placed.at.pool_weights = result.as<float>();
  placed.at.hidden_gates =
      placed.room("hidden gates", kernels::hidden_gate_count(inputs) * 4).as<float>();
  if (inputs.group_count() > 0) {
    for (const kernels::OpArgs& args : kernels::weight_launches(inputs, placed.at))
      launch(context, args, output.run);
  }
  output.pool_weights = values_of<float>(result.download());
  output.guards = context.target.check_guards();
  return output;
}

PooledOutput run_pool(StageContext& context, const PoolingInputs& inputs,
                      const std::vector<float>& pool_weights) {
  const std::int64_t count = inputs.group_count(), dim = inputs.head_dim;
  const bool quantised = inputs.mode.quantised();
  Placed placed(context.target, inputs);
  kernels::PlacedPooling& at = placed.at;
  const TargetBuffer& pooled = placed.room("pooled", count * dim * info(inputs.mode.cache).bytes);
  const TargetBuffer& scales = placed.room("scales", quantised ? count * 4 : 0);
  const TargetBuffer& checksums = placed.room("checksums", count * 16);
  const TargetBuffer& fallbacks = placed.room("fallbacks", count * 4);
  at.pool_weights = placed.put("pool weights", pool_weights).as<float>();
  at.norm_weight = placed.put("norm weight", inputs.norm_rope.norm_weight).as<float>();
  if (inputs.norm_rope.rope_dims > 0)
    at.rope = placed.put("rope", inputs.norm_rope.rope).as<float>();
  at.pooled = pooled.data();
  at.scales = quantised ? scales.as<float>() : nullptr;
  at.checksums = checksums.as<kernels::PoolChecksum>();
  at.fallbacks = fallbacks.as<std::int32_t>();
  PooledOutput output;
  if (count > 0) launch(context, kernels::PolicyArgs(kernels::pool_launch(inputs, at)), output.run);
  output.pooled = pooled.download();
  output.scales = values_of<float>(scales.download());
  output.checksums = values_of<kernels::PoolChecksum>(checksums.download());
  output.fallbacks = values_of<std::int32_t>(fallbacks.download());
  output.guards = context.target.check_guards();
  return output;
}

MaximaOutput run_block_max(StageContext& context, const BlockMaxInputs& inputs) {
  const std::int64_t rows = inputs.scores.dim(0), tokens = inputs.scores.dim(1);
  const std::int64_t stride = (tokens + 3) / 4 * 4,
                     blocks = (tokens + inputs.block - 1) / inputs.block;
  std::vector<float> padded(static_cast<std::size_t>(rows * stride));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      padded[static_cast<std::size_t>(row * stride + t)] =
          inputs.scores.as<float>()[static_cast<std::size_t>(row * tokens + t)];
    }
  }
  const TargetBuffer scores = upload(context.target, "scores", padded),
                     maxima(context.target, "maxima", rows * blocks * 4);
  kernels::BlockMaxArgs args;
  args.scores = scores.as<float>();
  args.rows = rows;
  args.tokens = tokens;
  args.stride = stride;
  args.block = static_cast<std::int32_t>(inputs.block);
  args.maxima = maxima.as<float>();
  MaximaOutput output;
  launch(context, kernels::PolicyArgs(args), output.run);
  output.maxima = values_of<float>(maxima.download());
  output.guards = context.target.check_guards();
  return output;
}

}  // namespace indexpool::verify::policy
