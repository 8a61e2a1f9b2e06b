#include "indexpool/kernels/policy/plan.hpp"

#include <algorithm>

#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// hidden_states is [T, X].
std::int64_t hidden_of(const GateOperands& gate) { return gate.hidden_states.dim(1); }
std::int64_t tokens_of(const GateOperands& gate) { return gate.hidden_states.dim(0); }

struct WeightLaunches {
  const PoolingInputs& in;
  const PlacedPooling& at;

  std::vector<OpArgs> operator()(const GivenWeights&) const { return {}; }
  std::vector<OpArgs> operator()(const RoleMatrix&) const {
    return {OpArgs(PolicyArgs(RoleWeightsArgs{at.pool_matrix, weight_sets(in),
                                              narrow(in.index_kpool), at.pool_weights}))};
  }
  std::vector<OpArgs> operator()(const AdditiveTerms& terms) const {
    AdditiveWeightsArgs args;
    args.grouped = grouped_vectors(in, at);
    args.queries = at.queries;
    args.distances = at.distances;
    args.ages = at.ages;
    args.alpha = terms.alpha;
    args.beta = terms.beta;
    args.gamma = terms.gamma;
    args.sigma = terms.sigma;
    args.tau = terms.tau;
    args.raw_cosine = terms.raw_cosine;
    args.pool_weights = at.pool_weights;
    return {OpArgs(PolicyArgs(args))};
  }
  std::vector<OpArgs> operator()(const GateOperands& gate) const {
    HiddenGatesArgs hidden;
    hidden.hidden_states = at.hidden_states;
    hidden.gate_weight = at.gate_weight;
    hidden.storage = in.mode.storage;
    hidden.tokens = tokens_of(gate);
    hidden.hidden = narrow(hidden_of(gate));
    hidden.head_dim = narrow(in.head_dim);
    hidden.heads = narrow(in.heads);
    hidden.hidden_gates = at.hidden_gates;
    GatedWeightsArgs gated;
    gated.grouped = grouped_vectors(in, at);
    gated.gate_weight = at.gate_weight;
    gated.gate_bias = at.gate_bias;
    gated.hidden_gates = at.hidden_gates;
    gated.hidden = hidden.hidden;
    gated.heads = hidden.heads;
    gated.pool_weights = at.pool_weights;
    return {OpArgs(PolicyArgs(hidden)), OpArgs(PolicyArgs(gated))};
  }
  std::vector<OpArgs> operator()(const AccessTerms& terms) const {
    TfidfWeightsArgs args;
    args.grouped = grouped_vectors(in, at);
    args.queries = at.queries;
    args.accesses = at.accesses;
    args.groups_accessed = at.groups_accessed;
    args.position_terms = at.position_terms;
    args.all_groups = terms.all_groups;
    std::copy(std::begin(terms.mix), std::end(terms.mix), std::begin(args.mix));
    args.pool_weights = at.pool_weights;
    return {OpArgs(PolicyArgs(args))};
  }
  std::vector<OpArgs> operator()(const ChannelScores&) const {
    ChannelWeightsArgs args;
    args.grouped = grouped_vectors(in, at);
    args.gate_scores = at.gate_scores;
    args.position_bias = at.position_bias;
    args.pool_weights = at.pool_weights;
    return {OpArgs(PolicyArgs(args))};
  }
  std::vector<OpArgs> operator()(const NoWeights&) const {
    throw ConfigError("policy block_max has no pool weights: launch BlockMaxArgs");
  }
};

}  // namespace

std::int64_t pool_weight_count(const PoolingInputs& inputs) {
  return weight_sets(inputs) * inputs.index_kpool * (inputs.per_channel() ? inputs.head_dim : 1);
}

std::int64_t hidden_gate_count(const PoolingInputs& inputs) {
  const auto* gate = std::get_if<GateOperands>(&inputs.weights);
  return gate == nullptr ? 0 : tokens_of(*gate) * inputs.heads;
}

GroupedVectors grouped_vectors(const PoolingInputs& inputs, const PlacedPooling& placed) {
  GroupedVectors grouped;
  grouped.vectors = placed.vectors;
  grouped.storage = inputs.mode.storage;
  grouped.head_dim = narrow(inputs.head_dim);
  grouped.index_kpool = narrow(inputs.index_kpool);
  grouped.groups = placed.groups;
  grouped.group_count = inputs.group_count();
  const auto count = std::min<std::size_t>(inputs.offsets.size(), most_pooled_vectors);
  std::copy_n(inputs.offsets.begin(), count, std::begin(grouped.offsets));
  grouped.host_groups = inputs.groups.data();
  return grouped;
}

std::vector<OpArgs> weight_launches(const PoolingInputs& inputs, const PlacedPooling& placed) {
  return std::visit(WeightLaunches{inputs, placed}, inputs.weights);
}

WeightedPoolArgs pool_launch(const PoolingInputs& inputs, const PlacedPooling& placed) {
  WeightedPoolArgs args;
  args.grouped = grouped_vectors(inputs, placed);
  args.mode = inputs.mode;
  args.pool_weights = placed.pool_weights;
  args.per_channel = inputs.per_channel();
  args.divide = find_policy(inputs.policy).normalisation == Normalisation::division;
  if (!inputs.norm_rope.norm_weight.empty()) {
    args.norm_weight = placed.norm_weight;
    args.norm_eps = inputs.norm_rope.eps;
    args.rope = placed.rope;
    args.rope_dims = narrow(inputs.norm_rope.rope_dims);
  }
  args.pooled = placed.pooled;
  args.scales = placed.scales;
  args.checksums = placed.checksums;
  args.fallbacks = placed.fallbacks;
  return args;
}

}  // namespace indexpool::kernels
