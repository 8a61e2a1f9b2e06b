#include "indexpool/reports/cli/policy_forecast.hpp"

#include <algorithm>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::cli {
namespace {

using kernels::PolicyArgs;

constexpr std::int64_t hidden_size = 4096;  // of GLM-5.3-Flash, for the gate of form C

// Groups and vectors of `tokens` tokens.
struct Counts {
  std::int64_t groups = 0, vectors = 0;
};
Counts counts(const Problem& problem, const PolicyInfo& policy, std::int64_t tokens) {
  const std::int64_t m = problem.indexer.index_kpool, heads = problem.indexer.index_n_heads;
  switch (policy.grouping) {
    case Grouping::roles:
      return {tokens * heads * policy.outputs, tokens * heads * m};
    case Grouping::windows:
      return {tokens / (m / 2), 2 * tokens};
    case Grouping::neighbours:
    case Grouping::scores:
      return {tokens / m, tokens};
  }
  throw InternalError("a Grouping outside its enumeration");
}

// Arguments without memory: declared work needs shapes only.
struct Arguments {
  const Problem& problem;
  const PolicyInfo& policy;
  std::int64_t tokens;

  std::int32_t m() const { return static_cast<std::int32_t>(problem.indexer.index_kpool); }
  std::int32_t heads() const { return static_cast<std::int32_t>(problem.indexer.index_n_heads); }
  const NumericMode& mode() const { return pooling_mode(problem.mode); }

  kernels::GroupedVectors grouped() const {
    kernels::GroupedVectors grouped;
    grouped.storage = mode().storage;
    grouped.head_dim = static_cast<std::int32_t>(problem.indexer.index_head_dim);
    grouped.index_kpool = m();
    grouped.group_count = counts(problem, policy, tokens).groups;
    const bool windows = policy.grouping == Grouping::windows;
    for (std::int32_t i = 0; i < m(); ++i) {
      grouped.offsets[i] = windows ? 2 * i + (2 * i < m() ? 0 : 1) : i;
    }
    return grouped;
  }
  std::vector<PolicyArgs> gate_launches() const {
    kernels::HiddenGatesArgs first;
    first.storage = mode().storage;
    first.tokens = tokens;
    first.hidden = hidden_size;
    first.head_dim = grouped().head_dim;
    first.heads = heads();
    kernels::GatedWeightsArgs second;
    second.grouped = grouped();
    second.hidden = hidden_size;
    second.heads = heads();
    return {first, second};
  }
  std::vector<PolicyArgs> weight_launches() const {
    switch (policy.rule) {
      case WeightRule::given:
      case WeightRule::maximum:
        return {};
      case WeightRule::role_softmax: {
        kernels::RoleWeightsArgs args;
        args.sets = heads() * policy.outputs;
        args.index_kpool = m();
        return {args};
      }
      case WeightRule::additive: {
        kernels::AdditiveWeightsArgs args;
        args.grouped = grouped();
        args.raw_cosine = policy.name == "additive_raw";
        return {args};
      }
      case WeightRule::gated:
        return gate_launches();
      case WeightRule::tfidf: {
        kernels::TfidfWeightsArgs args;
        args.grouped = grouped();
        return {args};
      }
      case WeightRule::channel_softmax: {
        kernels::ChannelWeightsArgs args;
        args.grouped = grouped();
        return {args};
      }
    }
    throw InternalError("a WeightRule outside its enumeration");
  }
  PolicyArgs pool_launch() const {
    if (policy.grouping == Grouping::scores) {
      kernels::BlockMaxArgs args;
      args.rows = heads();
      args.tokens = tokens;
      args.stride = (tokens + 3) / 4 * 4;
      args.block = m();
      return args;
    }
    kernels::WeightedPoolArgs args;
    args.grouped = grouped();
    args.mode = mode();
    args.per_channel = policy.rule == WeightRule::channel_softmax;
    args.divide = policy.normalisation == Normalisation::division;
    return args;
  }
};

OperationForecast forecast(Op op, const PolicyArgs& args, const DeviceSpec& device) {
  OperationForecast out;
  out.op = to_string(op);
  try {
    const kernels::Kernel& kernel = kernels::find_kernel("simt", args);
    out.kernel = kernel.name;
    out.work = kernel.work(args);
    out.prediction = predict(out.work, device);
  } catch (const ConfigError& refusal) {
    out.refusal = refusal.what();
  }
  return out;
}

}  // namespace

std::vector<OperationForecast> policy_forecast(const Problem& problem, std::int64_t tokens,
                                               const DeviceSpec& device) {
  const Arguments arguments{problem, find_policy(problem.policy), tokens};
  std::vector<OperationForecast> forecasts;
  for (const PolicyArgs& args : arguments.weight_launches())
    forecasts.push_back(forecast(Op::pool_weights, args, device));
  forecasts.push_back(forecast(Op::pool, arguments.pool_launch(), device));
  return forecasts;
}

PolicyBytes policy_bytes(const Problem& problem, std::int64_t tokens) {
  const PolicyInfo& policy = find_policy(problem.policy);
  const NumericMode& mode = pooling_mode(problem.mode);
  const Counts count = counts(problem, policy, tokens);
  if (policy.grouping == Grouping::scores)
    return {problem.indexer.index_n_heads * tokens * 4,
            problem.indexer.index_n_heads * count.groups * 4};
  const std::int64_t dim = problem.indexer.index_head_dim;
  const std::int64_t stored = dim * info(mode.cache).bytes + (mode.quantised() ? 4 : 0);
  return {count.vectors * dim * info(mode.storage).bytes, count.groups * stored};
}

}  // namespace indexpool::cli
