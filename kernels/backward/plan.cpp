#include "indexpool/kernels/backward/plan.hpp"

#include <algorithm>
#include <string>

#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Segments of at most `longest` rows that never reach across a sum's end.
SumLevel cut(const std::vector<std::int64_t>& first, std::int64_t longest) {
  SumLevel level;
  for (std::size_t s = 0; s + 1 < first.size(); ++s)
    for (std::int64_t at = first[s]; at < first[s + 1]; at += longest) level.first.push_back(at);
  level.first.push_back(first.back());
  return level;
}

std::int64_t longest_of(const std::vector<std::int64_t>& first) {
  std::int64_t longest = 0;
  for (std::size_t s = 0; s + 1 < first.size(); ++s)
    longest = std::max(longest, first[s + 1] - first[s]);
  return longest;
}

std::vector<OpArgs> gate_launches(const PoolingInputs& in, const GateOperands& gate,
                                  const PlacedBackward& at) {
  if (gate.hidden_states.dim(0) * in.heads != in.group_count())
    throw ConfigError("a gate's backward pass takes a group for each head of each token; found " +
                      std::to_string(in.group_count()) + " groups of " +
                      std::to_string(gate.hidden_states.dim(0)) + " tokens and " +
                      std::to_string(in.heads) + " heads");
  GateBackwardArgs group;
  group.grouped = grouped_vectors(in, at.forward);
  group.gate_weight = at.forward.gate_weight;
  group.hidden = narrow(gate.hidden_states.dim(1));
  group.heads = narrow(in.heads);
  group.pool_weights = at.forward.pool_weights;
  group.grad_weights = at.grad_weights;
  group.held_vectors = at.held_vectors;
  group.grad_vectors = at.grad_vectors;
  group.grad_gate = at.gate_rows;
  group.grad_hidden_gates = at.grad_hidden_gates;
  HiddenStatesBackwardArgs states;
  states.gate_weight = at.forward.gate_weight;
  states.storage = in.mode.storage;
  states.tokens = gate.hidden_states.dim(0);
  states.hidden = group.hidden;
  states.head_dim = narrow(in.head_dim);
  states.heads = group.heads;
  states.grad_hidden_gates = at.grad_hidden_gates;
  states.grad_hidden_states = at.grad_hidden_states;
  HiddenGateBackwardArgs rows;
  rows.hidden_states = at.forward.hidden_states;
  rows.storage = in.mode.storage;
  rows.tokens = states.tokens;
  rows.hidden = group.hidden;
  rows.heads = group.heads;
  rows.grad_hidden_gates = at.grad_hidden_gates;
  rows.grad_gate = at.hidden_gate_rows;
  return {OpArgs(BackwardArgs(group)), OpArgs(BackwardArgs(states)), OpArgs(BackwardArgs(rows))};
}

CosineBackwardArgs cosine_launch(const PoolingInputs& in, const PlacedBackward& at, float share) {
  CosineBackwardArgs args;
  args.grouped = grouped_vectors(in, at.forward);
  args.queries = at.forward.queries;
  args.cosine_share = share;
  args.grad_weights = at.grad_weights;
  args.held_vectors = at.held_vectors;
  args.grad_vectors = at.grad_vectors;
  args.grad_queries = at.grad_queries;
  args.cosines = at.cosines;
  return args;
}

std::vector<OpArgs> additive_launches(const PoolingInputs& in, const AdditiveTerms& of,
                                      const PlacedBackward& at) {
  AdditiveTermsBackwardArgs terms;
  terms.group_count = in.group_count();
  terms.index_kpool = narrow(in.index_kpool);
  terms.distances = at.forward.distances;
  terms.ages = at.forward.ages;
  terms.cosines = at.cosines;
  terms.grad_weights = at.grad_weights;
  terms.alpha = of.alpha;
  terms.gamma = of.gamma;
  terms.sigma = of.sigma;
  terms.tau = of.tau;
  terms.raw_cosine = of.raw_cosine;
  terms.term_rows = at.term_rows;
  const float share = of.raw_cosine ? of.beta : of.beta * 0.5f;
  return {OpArgs(BackwardArgs(cosine_launch(in, at, share))), OpArgs(BackwardArgs(terms))};
}

std::vector<OpArgs> tfidf_launches(const PoolingInputs& in, const AccessTerms& of,
                                   const PlacedBackward& at) {
  TfidfTermsBackwardArgs terms;
  terms.grouped = grouped_vectors(in, at.forward);
  terms.accesses = at.forward.accesses;
  terms.groups_accessed = at.forward.groups_accessed;
  terms.position_terms = at.forward.position_terms;
  terms.cosines = at.cosines;
  terms.grad_weights = at.grad_weights;
  terms.all_groups = of.all_groups;
  terms.position_share = of.mix[1];
  terms.term_rows = at.term_rows;
  terms.position_rows = at.position_rows;
  return {OpArgs(BackwardArgs(cosine_launch(in, at, of.mix[2] * 0.5f))),
          OpArgs(BackwardArgs(terms))};
}

}  // namespace

std::int64_t weight_terms(const PoolingInputs& inputs) {
  if (std::holds_alternative<AdditiveTerms>(inputs.weights)) return additive_terms;
  return std::holds_alternative<AccessTerms>(inputs.weights) ? tfidf_terms : 0;
}
std::int64_t groups_per_term_row(const PoolingInputs& inputs) {
  return groups_per_term_row(narrow(inputs.index_kpool));
}
std::int64_t weight_term_rows(const PoolingInputs& inputs) {
  return term_row_count(inputs.group_count(), narrow(inputs.index_kpool));
}

std::vector<SumLevel> sum_levels(std::span<const std::int32_t> sum_of_row, std::int64_t sums,
                                 std::int64_t width) {
  SumLevel whole;
  whole.first.assign(static_cast<std::size_t>(sums) + 1, 0);
  for (const std::int32_t sum : sum_of_row) {
    if (sum < 0 || sum >= sums) throw InternalError("a row belongs to no sum");
    ++whole.first[static_cast<std::size_t>(sum) + 1];
  }
  for (std::size_t s = 1; s < whole.first.size(); ++s) whole.first[s] += whole.first[s - 1];
  whole.rows.resize(sum_of_row.size());
  std::vector<std::int64_t> next = whole.first;
  for (std::size_t j = 0; j < sum_of_row.size(); ++j) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(sum_of_row[j])]++);
    whole.rows[at] = narrow(static_cast<std::int64_t>(j));
  }
  std::vector<SumLevel> levels;
  const std::int64_t longest = rows_per_segment(width);
  while (true) {
    const bool last = longest_of(whole.first) <= longest;
    SumLevel level = last ? SumLevel{{}, whole.first} : cut(whole.first, longest);
    level.rows = std::move(whole.rows);
    // Sums of this level's segments are the rows of the next.
    SumLevel above;
    for (const std::int64_t end : whole.first)
      above.first.push_back(std::ranges::lower_bound(level.first, end) - level.first.begin());
    levels.push_back(std::move(level));
    if (last) return levels;
    whole = std::move(above);
  }
}

SumRowsArgs sum_launch(const SumLevel& level, const std::int32_t* rows, const std::int64_t* first,
                       std::int64_t width, const float* values, float* sums) {
  SumRowsArgs args;
  args.values = values;
  args.rows = level.rows.empty() ? nullptr : rows;
  args.first = first;
  args.segments = level.segments();
  args.width = narrow(width);
  args.sums = sums;
  args.host_rows = level.rows.empty() ? nullptr : level.rows.data();
  args.host_first = level.first.data();
  return args;
}

bool shares_weights(const PoolingInputs& inputs) {
  const WeightRule rule = find_policy(inputs.policy).rule;
  return rule == WeightRule::given || rule == WeightRule::role_softmax;
}

BackwardArgs to_weights_launch(const PoolingInputs& in, const PlacedBackward& at, bool clip) {
  const WeightedPoolArgs forward = pool_launch(in, at.forward);
  if (!forward.per_channel) {
    PoolBackwardArgs args;
    args.grouped = forward.grouped;
    args.pool_weights = forward.pool_weights;
    args.divide = forward.divide;
    args.clip = clip && !shares_weights(in);
    args.grad_pooled = at.grad_pooled;
    args.grad_vectors = at.held_vectors;
    args.grad_weights = at.slot_weights;
    return args;
  }
  ChannelPoolBackwardArgs args;
  args.grouped = forward.grouped;
  args.pool_weights = forward.pool_weights;
  args.clip = clip;
  args.norm_weight = forward.norm_weight;
  args.norm_eps = forward.norm_eps;
  args.rope = forward.rope;
  args.rope_dims = forward.rope_dims;
  args.grad_pooled = at.grad_pooled;
  args.grad_vectors = at.held_vectors;
  args.grad_weights = at.slot_weights;
  args.grad_norm = at.norm_rows;
  return args;
}

std::vector<OpArgs> through_weights_launches(const PoolingInputs& in, const PlacedBackward& at) {
  if (const auto* gate = std::get_if<GateOperands>(&in.weights))
    return gate_launches(in, *gate, at);
  if (const auto* terms = std::get_if<AdditiveTerms>(&in.weights))
    return additive_launches(in, *terms, at);
  if (const auto* terms = std::get_if<AccessTerms>(&in.weights))
    return tfidf_launches(in, *terms, at);
  if (in.per_channel()) {
    return {OpArgs(BackwardArgs(
        ChannelSoftmaxBackwardArgs{in.group_count(), narrow(in.index_kpool), narrow(in.head_dim),
                                   at.forward.pool_weights, at.grad_weights, at.grad_operand}))};
  }
  if (std::holds_alternative<RoleMatrix>(in.weights)) {
    return {OpArgs(BackwardArgs(RoleSoftmaxBackwardArgs{weight_sets(in), narrow(in.index_kpool),
                                                        at.forward.pool_weights, at.grad_weights,
                                                        at.grad_operand}))};
  }
  return {};
}

}  // namespace indexpool::kernels
