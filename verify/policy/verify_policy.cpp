#include <algorithm>
#include <bit>
#include <cmath>

#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/policy/backward.hpp"
#include "indexpool/verify/policy/checks.hpp"
#include "indexpool/verify/policy/policy.hpp"
#include "indexpool/verify/problem_judge.hpp"

namespace indexpool::verify::policy {
namespace {

Buffers buffers_of(const WeightsOutput& output) {
  return {{"pool weights", bytes_of(output.pool_weights), 1, 1}};
}
Buffers buffers_of(const PooledOutput& output) {
  return {{"pooled", std::span(output.pooled)},
          {"scales", bytes_of(output.scales), 1, 1},
          {"checksums", bytes_of(output.checksums), 2, 4},
          {"fallbacks", bytes_of(output.fallbacks)}};
}
Buffers buffers_of(const MaximaOutput& output) { return {{"maxima", bytes_of(output.maxima)}}; }

using Judge = ProblemJudge;

// 0 where binary32 overflows: pooling takes finite weights.
std::vector<float> rounded(const reference::Bounded& bounds) {
  std::vector<float> values;
  for (const double value : bounds.value) {
    const auto narrow = static_cast<float>(value);
    values.push_back(std::isfinite(narrow) ? narrow : 0);
  }
  return values;
}

OnGpu on_gpu(const PoolingInputs& inputs) {
  const bool tensor_cores =
      std::holds_alternative<GateOperands>(inputs.weights) && inputs.mode.storage != DType::f32;
  return tensor_cores ? OnGpu::matrix_cores : OnGpu::same_bytes;
}

// The weights as the kernel made them where they are right, as the reference did where not.
std::vector<float> judge_weights(Judge& judge, const PoolingInputs& inputs) {
  if (const auto* given = std::get_if<GivenWeights>(&inputs.weights)) {
    const auto values = given->pool_weights.as<float>();
    return {values.begin(), values.end()};
  }
  const reference::Bounded expected = reference::pool_weights(inputs);
  std::vector<float> handed_on = rounded(expected);
  const auto groups = static_cast<double>(inputs.group_count());
  judge.record(Op::pool_weights, groups, [&](Record& record) {
    const auto run = [&](StageContext& context) { return run_weights(context, inputs); };
    const auto executed = execute(
        judge.options, run, [](const WeightsOutput& o) { return buffers_of(o); }, on_gpu(inputs));
    const std::vector<float>& found = executed.first.pool_weights;
    std::vector<Check> checks = {check_weights(inputs, found, expected),
                                 check_weight_range(inputs, found, expected)};
    const Reversed other = reversed(inputs);
    const WeightsOutput turned =
        judge.once([&](StageContext& context) { return run_weights(context, other.inputs); });
    checks.push_back(folded("permutation", {check_weights(other.inputs, turned.pool_weights,
                                                          reference::pool_weights(other.inputs))}));
    Judge::finish(executed, std::move(checks), record);
    add_monitoring(inputs, found, {}, record);
    if (wants_timing(judge.options, record.verdict))
      record.measurement = measure(judge.options, run).run.measurement;
    if (!usable(record.verdict)) return;
    // Where binary32 may overflow a kernel may give any weight, and pooling nothing that is judged.
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!reference::is_open(expected.low[i], expected.high[i])) handed_on[i] = found[i];
    }
  });
  return handed_on;
}

// The vectors of each group in the opposite order, the weights along.
Check check_permutation(const Judge& judge, const PoolingInputs& inputs,
                        const std::vector<float>& weights) {
  const Reversed other = reversed(inputs);
  const std::vector<float> turned = reversed(inputs, weights, other.kept);
  const PooledOutput output =
      judge.once([&](StageContext& context) { return run_pool(context, other.inputs, turned); });
  const reference::Pooled expected = as_reference(reference::pool(other.inputs, turned));
  const std::vector<char> all(other.kept.size(), 1);
  return folded(
      "permutation",
      pool_value_checks(as_pools(other.inputs), stored_pools(other.inputs, output), expected, all));
}

Check check_doubling(const Judge& judge, const PoolingInputs& inputs,
                     const std::vector<float>& weights, const reference::PolicyPooled& expected) {
  const PoolingInputs twice = doubled(inputs);
  const PooledOutput output =
      judge.once([&](StageContext& context) { return run_pool(context, twice, weights); });
  return check_scaling(inputs, output, expected, scalable(inputs, expected));
}

void judge_pool(Judge& judge, const PoolingInputs& inputs, const std::vector<float>& weights) {
  const auto groups = static_cast<double>(inputs.group_count());
  judge.record(Op::pool, groups, [&](Record& record) {
    const auto run = [&](StageContext& context) { return run_pool(context, inputs, weights); };
    const auto executed = execute(
        judge.options, run, [](const PooledOutput& o) { return buffers_of(o); }, OnGpu::same_bytes);
    const reference::PolicyPooled expected = reference::pool(inputs, weights);
    const IndexerInputs pools = as_pools(inputs);
    const StoredPools stored = stored_pools(inputs, executed.first);
    const std::vector<char> all(inputs.groups.size(), 1);
    std::vector<Check> checks = pool_value_checks(pools, stored, as_reference(expected), all);
    if (inputs.mode.cache == DType::f32)
      checks.front().utilisation = wide_utilisation(stored, expected.pooled);
    checks.push_back(check_checksum(pools, stored, executed.first.checksums, expected.before, all));
    checks.push_back(check_fallbacks(inputs, executed.first.fallbacks, expected));
    checks.push_back(check_convexity(inputs, stored, expected.pooled));
    checks.push_back(check_permutation(judge, inputs, weights));
    checks.push_back(check_doubling(judge, inputs, weights, expected));
    Judge::finish(executed, std::move(checks), record);
    record.verdict.rows = inputs.group_count();
    add_monitoring(inputs, weights, executed.first.fallbacks, record);
    if (wants_timing(judge.options, record.verdict))
      record.measurement = measure(judge.options, run).run.measurement;
  });
}

void judge_block_max(Judge& judge, const BlockMaxInputs& inputs) {
  const Tensor expected = reference::block_max(inputs);
  judge.record(Op::pool, static_cast<double>(expected.size()), [&](Record& record) {
    const auto run = [&](StageContext& context) { return run_block_max(context, inputs); };
    const auto executed = execute(
        judge.options, run, [](const MaximaOutput& o) { return buffers_of(o); }, OnGpu::same_bytes);
    Tally tally("bound");
    const auto wanted = expected.as<float>();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // +0 and -0 are the same maximum.
      const float found = executed.first.maxima[i];
      tally.compare(found == wanted[i], [&] {
        return "block " + std::to_string(i) + ": " + std::to_string(found) + ", expected " +
               std::to_string(wanted[i]);
      });
    }
    Judge::finish(executed, {std::move(tally).finish()}, record);
    if (wants_timing(judge.options, record.verdict))
      record.measurement = measure(judge.options, run).run.measurement;
  });
}

}  // namespace

std::vector<Record> verify_policy(const Problem& problem, const Options& options) {
  Judge judge{problem, options, {}};
  if (find_policy(problem.policy).grouping == Grouping::scores) {
    judge_block_max(judge, make_block_max_inputs(problem));
    return std::move(judge.records);
  }
  const PoolingInputs inputs = make_inputs(problem);
  indexpool::validate(inputs);
  const auto progress = [&](const char* what) {
    if (options.progress) options.progress(describe(problem) + ": " + what);
  };
  progress("pool_weights");
  const std::vector<float> weights = judge_weights(judge, inputs);
  progress("pool");
  judge_pool(judge, inputs, weights);
  if (find_policy(problem.policy).learnable) progress("pool_backward");
  judge_backward(judge, inputs, weights);
  return std::move(judge.records);
}

}  // namespace indexpool::verify::policy
