#include "indexpool/verify/strategies/latency.hpp"

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::verify::strategies {
namespace {

using kernels::PolicyArgs;

kernels::GroupedVectors grouped_of(const PoolingShape& shape) {
  kernels::GroupedVectors grouped;
  grouped.storage = DType::bf16;
  grouped.head_dim = static_cast<std::int32_t>(shape.head_dim);
  grouped.index_kpool = static_cast<std::int32_t>(shape.vectors);
  grouped.group_count = shape.groups;
  for (std::int32_t i = 0; i < grouped.index_kpool; ++i) grouped.offsets[i] = i;
  return grouped;
}

std::vector<PolicyArgs> gate_launches(const PoolingShape& shape) {
  kernels::HiddenGatesArgs hidden;
  hidden.storage = DType::bf16;
  hidden.tokens = shape.tokens;
  hidden.hidden = static_cast<std::int32_t>(shape.hidden);
  hidden.head_dim = static_cast<std::int32_t>(shape.head_dim);
  hidden.heads = static_cast<std::int32_t>(shape.heads);
  kernels::GatedWeightsArgs gates;
  gates.grouped = grouped_of(shape);
  gates.hidden = hidden.hidden;
  gates.heads = hidden.heads;
  return {hidden, gates};
}

std::vector<PolicyArgs> weight_launches(const PoolingShape& shape) {
  switch (find_policy(shape.policy).rule) {
    case WeightRule::given:
      return {};
    case WeightRule::gated:
      return gate_launches(shape);
    case WeightRule::additive: {
      kernels::AdditiveWeightsArgs args;
      args.grouped = grouped_of(shape);
      return {args};
    }
    case WeightRule::tfidf: {
      kernels::TfidfWeightsArgs args;
      args.grouped = grouped_of(shape);
      return {args};
    }
    default:
      throw InternalError("a policy that no strategy is shown on");
  }
}

}  // namespace

std::vector<Work> work_of(const PoolingShape& shape) {
  std::vector<PolicyArgs> launches;
  if (shape.with_weights) launches = weight_launches(shape);
  kernels::WeightedPoolArgs pool;
  pool.grouped = grouped_of(shape);
  pool.mode = pooling_mode("bf16");
  pool.divide = find_policy(shape.policy).normalisation == Normalisation::division;
  launches.emplace_back(pool);
  std::vector<Work> work;
  work.reserve(launches.size());
  for (const PolicyArgs& args : launches)
    work.push_back(kernels::find_kernel("simt", args).work(args));
  return work;
}

const CostNumbers& PoolingLatency::of(const PoolingShape& shape) {
  const auto found = known_.find(shape);
  if (found != known_.end()) return found->second;
  CostNumbers sum;
  for (const Work& work : work_of(shape)) {
    const CostNumbers one =
        predict_numbers(work, device_, {.warm_l2 = false, .graph_launch = true});
    sum.time += one.time;
    sum.low += one.low;
    sum.high += one.high;
  }
  return known_.emplace(shape, sum).first->second;
}

}  // namespace indexpool::verify::strategies
