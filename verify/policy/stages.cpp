// Each operation of a published form as a function from host values to host values, on a target.
#include <algorithm>
#include <utility>

#include "indexpool/verify/policy/policy.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::policy {
namespace {

using kernels::GroupedVectors;

// Buffers live as long as the object.
struct GroupsOnTarget {
  TargetBuffer vectors, groups;
  GroupedVectors args;

  GroupsOnTarget(kernels::Target& target, const PoolingInputs& inputs)
      : vectors(upload(target, "vectors", inputs.vectors)),
        groups(upload(target, "groups", inputs.groups)) {
    args.vectors = vectors.data();
    args.storage = inputs.mode.storage;
    args.head_dim = static_cast<std::int32_t>(inputs.head_dim);
    args.index_kpool = static_cast<std::int32_t>(inputs.index_kpool);
    args.groups = groups.as<VectorGroup>();
    args.group_count = inputs.group_count();
    std::ranges::copy(inputs.offsets, args.offsets);
    args.host_groups = inputs.groups.data();
  }
};

std::int64_t weight_count(const PoolingInputs& inputs) {
  const std::int64_t channels = inputs.per_channel() ? inputs.head_dim : 1;
  return weight_sets(inputs) * inputs.index_kpool * channels;
}

// Launches what makes the weights of one rule.
struct WeightLaunch {
  StageContext& context;
  const PoolingInputs& inputs;
  float* pool_weights;
  OpRun& run;

  kernels::Target& target() const { return context.target; }
  void launch_it(const kernels::PolicyArgs& args) const { launch(context, args, run); }

  void operator()(const GivenWeights&) const {}
  void operator()(const NoWeights&) const {}
  void operator()(const RoleMatrix& roles) const {
    const TargetBuffer matrix = upload(target(), "pool matrix", roles.pool_matrix);
    kernels::RoleWeightsArgs args;
    args.pool_matrix = matrix.as<float>();
    args.sets = weight_sets(inputs);
    args.index_kpool = static_cast<std::int32_t>(inputs.index_kpool);
    args.pool_weights = pool_weights;
    launch_it(args);
  }
  void operator()(const AdditiveTerms& terms) const {
    const GroupsOnTarget grouped(target(), inputs);
    const TargetBuffer queries = upload(target(), "queries", terms.queries),
                       distances = upload(target(), "distances", terms.distances),
                       ages = upload(target(), "ages", terms.ages);
    kernels::AdditiveWeightsArgs args;
    args.grouped = grouped.args;
    args.queries = queries.data();
    args.distances = distances.as<float>();
    args.ages = ages.as<float>();
    args.alpha = terms.alpha;
    args.beta = terms.beta;
    args.gamma = terms.gamma;
    args.sigma = terms.sigma;
    args.tau = terms.tau;
    args.raw_cosine = terms.raw_cosine;
    args.pool_weights = pool_weights;
    launch_it(args);
  }
  void operator()(const GateOperands& gates) const {
    const GroupsOnTarget grouped(target(), inputs);
    const std::int64_t tokens = gates.hidden_states.dim(0);
    const TargetBuffer states = upload(target(), "hidden states", gates.hidden_states),
                       weight = upload(target(), "gate weight", gates.gate_weight),
                       bias = upload(target(), "gate bias", gates.gate_bias),
                       hidden(target(), "hidden gates", tokens * inputs.heads * 4);
    kernels::HiddenGatesArgs first;
    first.hidden_states = states.data();
    first.gate_weight = weight.data();
    first.storage = inputs.mode.storage;
    first.tokens = tokens;
    first.hidden = static_cast<std::int32_t>(gates.hidden_states.dim(1));
    first.head_dim = grouped.args.head_dim;
    first.heads = static_cast<std::int32_t>(inputs.heads);
    first.hidden_gates = hidden.as<float>();
    launch_it(first);
    kernels::GatedWeightsArgs second;
    second.grouped = grouped.args;
    second.gate_weight = weight.data();
    second.gate_bias = bias.as<float>();
    second.hidden_gates = hidden.as<float>();
    second.hidden = first.hidden;
    second.heads = first.heads;
    second.pool_weights = pool_weights;
    launch_it(second);
  }
  void operator()(const AccessTerms& terms) const {
    const GroupsOnTarget grouped(target(), inputs);
    const TargetBuffer queries = upload(target(), "queries", terms.queries),
                       accesses = upload(target(), "accesses", terms.accesses),
                       among = upload(target(), "groups accessed", terms.groups_accessed),
                       positions = upload(target(), "position terms", terms.position_terms);
    kernels::TfidfWeightsArgs args;
    args.grouped = grouped.args;
    args.queries = queries.data();
    args.accesses = accesses.as<std::int32_t>();
    args.groups_accessed = among.as<std::int32_t>();
    args.position_terms = positions.as<float>();
    args.all_groups = terms.all_groups;
    std::ranges::copy(terms.mix, args.mix);
    args.pool_weights = pool_weights;
    launch_it(args);
  }
  void operator()(const ChannelScores& scores) const {
    const GroupsOnTarget grouped(target(), inputs);
    const TargetBuffer gates = upload(target(), "gate scores", scores.gate_scores),
                       bias = upload(target(), "position bias", scores.position_bias);
    kernels::ChannelWeightsArgs args;
    args.grouped = grouped.args;
    args.gate_scores = gates.data();
    args.position_bias = bias.as<float>();
    args.pool_weights = pool_weights;
    launch_it(args);
  }
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
  const TargetBuffer result(context.target, "pool weights", weight_count(inputs) * 4);
  if (inputs.group_count() > 0)
    std::visit(WeightLaunch{context, inputs, result.as<float>(), output.run}, inputs.weights);
  output.pool_weights = values_of<float>(result.download());
  output.guards = context.target.check_guards();
  return output;
}

PooledOutput run_pool(StageContext& context, const PoolingInputs& inputs,
                      const std::vector<float>& pool_weights) {
  kernels::Target& target = context.target;
  const GroupsOnTarget grouped(target, inputs);
  const std::int64_t count = inputs.group_count(), dim = inputs.head_dim;
  const bool quantised = inputs.mode.quantised();
  const TargetBuffer weights = upload(target, "pool weights", pool_weights),
                     norm = upload(target, "norm weight", inputs.norm_rope.norm_weight),
                     rope = upload(target, "rope", inputs.norm_rope.rope),
                     pooled(target, "pooled", count * dim * info(inputs.mode.cache).bytes),
                     scales(target, "scales", quantised ? count * 4 : 0),
                     checksums(target, "checksums", count * 16),
                     fallbacks(target, "fallbacks", count * 4);
  kernels::WeightedPoolArgs args;
  args.grouped = grouped.args;
  args.mode = inputs.mode;
  args.pool_weights = weights.as<float>();
  args.per_channel = inputs.per_channel();
  args.divide = find_policy(inputs.policy).normalisation == Normalisation::division;
  if (!inputs.norm_rope.norm_weight.empty()) {
    args.norm_weight = norm.as<float>();
    args.norm_eps = inputs.norm_rope.eps;
    args.rope_dims = static_cast<std::int32_t>(inputs.norm_rope.rope_dims);
    args.rope = args.rope_dims > 0 ? rope.as<float>() : nullptr;
  }
  args.pooled = pooled.data();
  args.scales = quantised ? scales.as<float>() : nullptr;
  args.checksums = checksums.as<kernels::PoolChecksum>();
  args.fallbacks = fallbacks.as<std::int32_t>();
  PooledOutput output;
  if (count > 0) launch(context, kernels::PolicyArgs(args), output.run);
  output.pooled = pooled.download();
  output.scales = values_of<float>(scales.download());
  output.checksums = values_of<kernels::PoolChecksum>(checksums.download());
  output.fallbacks = values_of<std::int32_t>(fallbacks.download());
  output.guards = target.check_guards();
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
