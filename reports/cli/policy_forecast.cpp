#include "indexpool/reports/cli/policy_forecast.hpp"

#include <algorithm>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/policy/unplaced.hpp"
#include "indexpool/kernels/unplaced.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::cli {
namespace {

using kernels::OpArgs;
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

OpArgs pool_launch(const PolicyInfo& policy, const kernels::PolicyShape& shape) {
  if (policy.grouping != Grouping::scores) return PolicyArgs(kernels::unplaced_pool(shape));
  kernels::BlockMaxArgs args;
  args.rows = shape.heads;
  args.tokens = shape.tokens;
  args.stride = kernels::whole_logits_stride(shape.tokens);
  args.block = static_cast<std::int32_t>(shape.index_kpool);
  return PolicyArgs(args);
}

}  // namespace

std::vector<OperationForecast> policy_forecast(const Problem& problem, std::int64_t tokens,
                                               const DeviceSpec& device) {
  const PolicyInfo& policy = find_policy(problem.policy);
  const IndexerConfig& indexer = problem.indexer;
  const kernels::PolicyShape shape{policy.name,
                                   pooling_mode(problem.mode),
                                   counts(problem, policy, tokens).groups,
                                   indexer.index_kpool,
                                   indexer.index_head_dim,
                                   indexer.index_n_heads,
                                   tokens,
                                   hidden_size};
  std::vector<OperationForecast> forecasts;
  for (const OpArgs& args : kernels::unplaced_weights(shape))
    forecasts.push_back(forecast_launch(std::string(to_string(Op::pool_weights)), args, device));
  forecasts.push_back(
      forecast_launch(std::string(to_string(Op::pool)), pool_launch(policy, shape), device));
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
