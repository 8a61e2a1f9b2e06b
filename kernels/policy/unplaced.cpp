#include "indexpool/kernels/policy/unplaced.hpp"

#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

GroupedVectors grouped(const PolicyShape& shape) {
  GroupedVectors grouped;
  grouped.storage = shape.mode.storage;
  grouped.head_dim = narrow(shape.head_dim);
  grouped.index_kpool = narrow(shape.index_kpool);
  grouped.group_count = shape.groups;
  const bool windows = find_policy(shape.policy).grouping == Grouping::windows;
  for (std::int32_t i = 0; i < grouped.index_kpool; ++i)
    grouped.offsets[i] = windows ? 2 * i + (2 * i < grouped.index_kpool ? 0 : 1) : i;
  return grouped;
}

std::vector<OpArgs> gate_launches(const PolicyShape& shape) {
  HiddenGatesArgs hidden;
  hidden.storage = shape.mode.storage;
  hidden.tokens = shape.tokens;
  hidden.hidden = narrow(shape.hidden);
  hidden.head_dim = narrow(shape.head_dim);
  hidden.heads = narrow(shape.heads);
  GatedWeightsArgs gated;
  gated.grouped = grouped(shape);
  gated.hidden = hidden.hidden;
  gated.heads = hidden.heads;
  return {PolicyArgs(hidden), PolicyArgs(gated)};
}

template <class Args>
std::vector<OpArgs> of_groups(const PolicyShape& shape) {
  Args args;
  args.grouped = grouped(shape);
  return {PolicyArgs(args)};
}

}  // namespace

std::vector<OpArgs> unplaced_weights(const PolicyShape& shape) {
  const PolicyInfo& policy = find_policy(shape.policy);
  switch (policy.rule) {
    case WeightRule::given:
    case WeightRule::maximum:
      return {};
    case WeightRule::role_softmax: {
      RoleWeightsArgs args;
      args.sets = shape.heads * policy.outputs;
      args.index_kpool = narrow(shape.index_kpool);
      return {PolicyArgs(args)};
    }
    case WeightRule::additive: {
      AdditiveWeightsArgs args;
      args.grouped = grouped(shape);
      args.raw_cosine = policy.name == "additive_raw";
      return {PolicyArgs(args)};
    }
    case WeightRule::gated:
      return gate_launches(shape);
    case WeightRule::tfidf:
      return of_groups<TfidfWeightsArgs>(shape);
    case WeightRule::channel_softmax:
      return of_groups<ChannelWeightsArgs>(shape);
  }
  throw InternalError("a WeightRule outside its enumeration");
}

WeightedPoolArgs unplaced_pool(const PolicyShape& shape) {
  const PolicyInfo& policy = find_policy(shape.policy);
  WeightedPoolArgs args;
  args.grouped = grouped(shape);
  args.mode = shape.mode;
  args.per_channel = policy.rule == WeightRule::channel_softmax;
  args.divide = policy.normalisation == Normalisation::division;
  return args;
}

}  // namespace indexpool::kernels
