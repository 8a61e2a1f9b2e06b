#include "indexpool/verify/strategies/latency.hpp"

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/policy/unplaced.hpp"

namespace indexpool::verify::strategies {
std::vector<Work> work_of(const PoolingShape& shape) {
  const kernels::PolicyShape pooled{shape.policy,  pooling_mode("bf16"), shape.groups,
                                    shape.vectors, shape.head_dim,       shape.heads,
                                    shape.tokens,  shape.hidden};
  std::vector<kernels::OpArgs> launches;
  if (shape.with_weights) launches = kernels::unplaced_weights(pooled);
  launches.emplace_back(kernels::PolicyArgs(kernels::unplaced_pool(pooled)));
  std::vector<Work> work;
  work.reserve(launches.size());
  for (const kernels::OpArgs& args : launches)
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
