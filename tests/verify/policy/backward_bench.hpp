// Operands of a backward pass of any shape, absent vectors included, and its run on a target.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "indexpool/kernels/backward/plan.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/policy/backward.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::policy {

inline const char* const backward_policies[] = {
    "composite", "additive", "additive_raw", "gated", "tfidf", "kpool_weights", "csa"};

struct BackwardCase {
  PoolingInputs inputs;
  std::vector<float> weights, grad_pooled;
};
struct BackwardShape {
  std::string policy = "gated", mode = "bf16";
  std::int64_t index_kpool = 4, head_dim = 64, heads = 2, tokens = 21;
  std::uint64_t seed = 1;
  bool absent = false;      // every third group lacks vectors
  double weight_scale = 1;  // of the stored weights where they are divided by their sum
};
inline BackwardCase backward_case(const BackwardShape& shape) {
  Problem problem;
  problem.policy = shape.policy;
  problem.mode = shape.mode;
  problem.indexer.index_kpool = shape.index_kpool;
  problem.indexer.index_topk = 16 * shape.index_kpool;
  problem.indexer.index_head_dim = shape.head_dim;
  problem.indexer.index_n_heads = shape.heads;
  problem.lengths = {std::max<std::int64_t>(shape.tokens, 1)};
  problem.seed = shape.seed;
  BackwardCase made;
  made.inputs = make_inputs(problem);
  if (shape.absent) {
    for (std::size_t g = 0; g < made.inputs.groups.size(); g += 3)
      made.inputs.groups[g].absent = static_cast<std::int32_t>(shape.index_kpool / 2);
  }
  const bool divides = find_policy(shape.policy).normalisation == Normalisation::division;
  for (const double w : reference::pool_weights(made.inputs).value)
    made.weights.push_back(static_cast<float>(divides ? w * shape.weight_scale : w));
  made.grad_pooled = make_grad_pooled(problem, made.inputs);
  return made;
}

inline BackwardOutput run_on(kernels::Target& target, const BackwardCase& of, bool clip = false) {
  StageContext context{target, make_lookup({}), false, {}};
  if (target.name() != "simt") {
    Options options;
    options.target = target.name();
    context.lookup = make_lookup(options);
  }
  return run_backward(context, of.inputs, of.weights, of.grad_pooled, clip);
}

// Sums of rows [rows, width] on the context's target.
struct RowSums {
  std::vector<float> values;
  OpRun run;
};
inline RowSums sum_rows_of(StageContext& context, const std::vector<float>& rows,
                           std::int64_t width, const std::vector<std::int32_t>& sum_of_row,
                           std::int64_t sums) {
  RowSums result;
  std::deque<TargetBuffer> buffers;
  const auto& values = buffers.emplace_back(upload(context.target, "values", rows));
  const float* from = values.as<float>();
  const auto levels = kernels::sum_levels(sum_of_row, sums, width);
  for (const kernels::SumLevel& level : levels) {
    const auto& list = buffers.emplace_back(upload(context.target, "rows", level.rows));
    const auto& first = buffers.emplace_back(upload(context.target, "first", level.first));
    const auto& to = buffers.emplace_back(context.target, "sums", level.segments() * width * 4);
    launch(
        context,
        kernels::BackwardArgs(kernels::sum_launch(
            level, list.as<std::int32_t>(), first.as<std::int64_t>(), width, from, to.as<float>())),
        result.run);
    from = to.as<float>();
  }
  result.values = values_of<float>(buffers.back().download());
  return result;
}

}  // namespace indexpool::verify::policy
