#include "indexpool/verify/field/trial.hpp"

#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/sim/simt/session.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

Options options_with(const kernels::Kernel* stand_in) {
  Options options;
  if (stand_in == nullptr) return options;
  options.target = stand_in->target;
  options.extra_kernels = {stand_in, 1};
  return options;
}

CacheOutput run_kernels(const CacheInputs& cache, const Options& options) {
  const auto target = kernels::make_simt_target();
  StageContext context{*target, make_lookup(options), false};
  return run_cache(context, cache);
}

StoredPools one_shot(const IndexerInputs& inputs, const Problem& problem) {
  const std::int64_t ring = kernels::ring_size(inputs.config.index_kpool, 0);
  const Timeline timeline = plan_timeline(inputs, {}, 0, problem.seed);
  const CacheLayout layout =
      lay_out_cache(inputs, timeline.positions, problem.states_per_page, ring, problem.seed);
  const CacheOutput output = run_kernels(stage_trial(inputs, timeline, layout, problem.seed), {});
  return read_stored(inputs, layout, output.cache);
}

std::vector<Check> judge_cache(const CacheTrial& trial) {
  const Problem& problem = trial.problem;
  const Case test_case = make_case(problem);
  const IndexerInputs& inputs = test_case.inputs;
  const Timeline timeline = plan_timeline(inputs, problem.schedule, 0, problem.seed);
  const std::int64_t planned =
      kernels::ring_size(inputs.config.index_kpool, problem.schedule.drafts);
  CacheLayout layout = lay_out_cache(inputs, timeline.positions, problem.states_per_page,
                                     trial.ring > 0 ? trial.ring : planned, problem.seed);
  if (trial.tail_block_stride > 0) layout.tail_block_stride = trial.tail_block_stride;
  const CacheInputs cache = stage_trial(inputs, timeline, layout, problem.seed);
  const CacheOutput output = run_kernels(cache, options_with(trial.stand_in));
  std::vector<Check> checks = judge_trial(cache, output, problem);
  checks.push_back(check_cache_untouched(layout, output));
  return checks;
}

}  // namespace

const kernels::Kernel& executor_kernel(const char* name) {
  const kernels::Kernel* kernel = kernels::find_kernel("simt", name);
  if (kernel == nullptr) throw InternalError(std::string("the executor has no kernel ") + name);
  return *kernel;
}

Check executor_refusal(const std::string& reason) {
  Check check;
  check.name = "executor";
  check.status = Status::failed;
  check.reason = reason;
  check.compared = check.violations = 1;
  return check;
}

Problem small_problem(std::vector<std::int64_t> lengths) {
  Problem problem;
  problem.indexer = {4, 32, 16, 4, true};
  problem.lengths = std::move(lengths);
  problem.states_per_page = 4;
  return problem;
}

CacheInputs stage_trial(const IndexerInputs& inputs, const Timeline& timeline,
                        const CacheLayout& layout, std::uint64_t seed) {
  constexpr std::uint64_t rejected_keys = 600, rejected_gates = 601;
  return {inputs, timeline, layout, stage_rows(inputs.keys, timeline, seed, rejected_keys),
          stage_rows(inputs.gate_scores, timeline, seed, rejected_gates)};
}

std::vector<Check> judge_trial(const CacheInputs& cache, const CacheOutput& output,
                               const Problem& problem) {
  const IndexerInputs& inputs = cache.inputs;
  const StoredPools stored = read_stored(inputs, cache.layout, output.cache);
  const reference::Pooled expected = reference::pool(inputs);
  const std::vector<char> all(static_cast<std::size_t>(stored.pools), 1);
  return {check_pool_scale(inputs, stored, expected, all),
          check_pool_quantiser(inputs, stored, expected, all),
          check_schedule(inputs, stored, one_shot(inputs, problem), all),
          check_tail(cache, output.tail), check_guards(output.guards)};
}

std::vector<Check> try_cache(const CacheTrial& trial) {
  try {
    return judge_cache(trial);
  } catch (const sim::simt::ExecutorError& error) {
    return {executor_refusal(error.kind + ": " + error.what())};
  }
}

std::vector<Check> try_operation(const Problem& problem, Op op, const kernels::Kernel* stand_in,
                                 bool lane_orders) {
  Options options = options_with(stand_in);
  options.all_lane_orders = lane_orders;
  std::vector<Check> checks;
  for (const Record& record : verify_problem(problem, options)) {
    if (record.op != to_string(op)) continue;
    const Verdict& verdict = record.verdict;
    if (verdict.status == Status::error) checks.push_back(executor_refusal(verdict.reason));
    checks.insert(checks.end(), verdict.checks.begin(), verdict.checks.end());
  }
  return checks;
}

}  // namespace indexpool::verify
