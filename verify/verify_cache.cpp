// pool and append: the cache after the whole timeline.
#include <algorithm>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/observe.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

CacheInputs stage_inputs(const IndexerInputs& inputs, const Timeline& timeline,
                         const CacheLayout& layout, std::uint64_t seed) {
  constexpr std::uint64_t rejected_keys = 500, rejected_gates = 501;
  return {inputs, timeline, layout, stage_rows(inputs.keys, timeline, seed, rejected_keys),
          stage_rows(inputs.gate_scores, timeline, seed, rejected_gates)};
}

Buffers buffers_of(const CacheOutput& output) {
  return {{"cache pages", std::span(output.cache)},
          {"tail ring", std::span(output.tail)},
          {"checksums", bytes_of(output.checksums), 2, 4}};  // kernels::PoolChecksum
}

CacheOutput run_once(const Options& options, const CacheInputs& cache) {
  const auto target = make_target(options, Way{}, false);
  StageContext context{*target, make_lookup(options), false, options.planner};
  return run_cache(context, cache);
}

// The pools of a one-shot prefill of the same inputs.
StoredPools one_shot_pools(const Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const std::uint64_t seed = journey.options.seed;
  const Timeline timeline = plan_timeline(inputs, {}, 0, seed);
  const CacheLayout layout = lay_out_cache(
      inputs, timeline.positions, journey.layout.states_per_page, journey.layout.ring, seed);
  const CacheInputs cache = stage_inputs(inputs, timeline, layout, seed);
  return read_stored(inputs, layout, run_once(journey.options, cache).cache);
}

// What the reference says, once for all pools.
struct Expected {
  reference::Pooled pooled, ones;
  reference::Bounded unrounded;
};

// Outputs of the kernels, taken apart.
struct Found {
  const CacheOutput& output;
  StoredPools stored;
  CacheOutput of_ones;
  StoredPools stored_ones;
  StoredPools one_shot;  // only when the timeline is another
};

IndexerInputs with_keys_of_one(const IndexerInputs& inputs) {
  IndexerInputs ones = inputs;
  ones.keys = Tensor(inputs.keys.dtype(), inputs.keys.shape());
  for (std::int64_t i = 0; i < ones.keys.size(); ++i) ones.keys.set(i, 1);
  return ones;
}

std::vector<Check> value_checks(const Journey& journey, const IndexerInputs& ones,
                                const Expected& expected, const Found& found, Mask mine) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  std::vector<Check> checks = pool_value_checks(inputs, found.stored, expected.pooled, mine);
  checks.push_back(
      check_weight_sum(ones, found.stored_ones, found.of_ones.checksums, expected.ones, mine));
  checks.push_back(
      check_checksum(inputs, found.stored, found.output.checksums, expected.unrounded, mine));
  if (found.one_shot.pools > 0) {
    checks.push_back(check_schedule(inputs, found.stored, found.one_shot, mine));
  }
  const auto& answers = journey.test_case.expected;
  if (answers.contains("pool_rows")) {
    checks.push_back(check_golden_codes(inputs, answers.at("pool_rows"), found.stored, mine));
  }
  if (!journey.golden.empty()) {
    constexpr std::string_view steps[] = {"pooled", "pool_scales", "pool_codes"};
    checks.push_back(check_golden_steps(journey.golden, steps));
  }
  return checks;
}

void add_record(Journey& journey, Op op, const OpRun& run, const Environment& environment,
                std::vector<Check> checks, Mask mine, const StoredPools& stored) {
  if (run.has_counts) checks.push_back(check_traffic(run.declared, run.counted));
  Record record = start_record(journey.test_case, journey.options, op);
  record.environment = environment;
  describe_run(run, record);
  const auto pools = std::ranges::count(mine, char{1});
  record.values["pools"] = static_cast<double>(pools);
  const std::int64_t state =
      stored.raw.empty() ? 0 : static_cast<std::int64_t>(stored.raw[0].size());
  record.values["cache_bytes"] = static_cast<double>(pools * state);
  record.verdict = assemble(std::move(checks));
  record.verdict.rows = pools;
  journey.records.push_back(std::move(record));
}

void add_timings(Journey& journey, const CacheInputs& cache) {
  const bool wanted = std::ranges::any_of(
      journey.records, [&](const Record& r) { return wants_timing(journey.options, r.verdict); });
  if (!wanted) return;
  const CacheOutput timed =
      measure(journey.options, [&](StageContext& context) { return run_cache(context, cache); });
  for (Record& record : journey.records) {
    if (!wants_timing(journey.options, record.verdict)) continue;
    if (record.op == to_string(Op::pool)) record.measurement = timed.pool.measurement;
    if (record.op == to_string(Op::append)) record.measurement = timed.append.measurement;
  }
}

void judge(Journey& journey, const CacheInputs& cache, const Executed<CacheOutput>& executed) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const Timeline& timeline = journey.timeline;
  const IndexerInputs ones = with_keys_of_one(inputs);
  const CacheInputs cache_of_ones =
      stage_inputs(ones, timeline, journey.layout, journey.options.seed);
  const Expected expected{reference::pool(inputs), reference::pool(ones),
                          mean_before_rounding(inputs)};
  Found found{executed.first,
              read_stored(inputs, journey.layout, executed.first.cache),
              run_once(journey.options, cache_of_ones),
              {},
              {}};
  found.stored_ones = read_stored(ones, journey.layout, found.of_ones.cache);
  if (timeline.decodes || timeline.rounds.size() > 1) found.one_shot = one_shot_pools(journey);

  std::vector<Check> shared = executed.checks;
  shared.push_back(check_cache_untouched(journey.layout, executed.first));
  shared.push_back(check_tail(cache, executed.first.tail));
  shared.push_back(check_guards(executed.first.guards));
  const std::vector<char>& by_append = executed.first.by_append;
  const auto record = [&](Op op, const OpRun& run, bool appended) {
    std::vector<char> mine(by_append.size());
    std::ranges::transform(by_append, mine.begin(),
                           [&](char by) { return static_cast<char>((by != 0) == appended); });
    std::vector<Check> checks = value_checks(journey, ones, expected, found, mine);
    checks.insert(checks.end(), shared.begin(), shared.end());
    observe_pools(journey.options, inputs, op, found.stored, expected.pooled, mine);
    add_record(journey, op, run, executed.environment, std::move(checks), mine, found.stored);
  };
  if (timeline.prefills) record(Op::pool, executed.first.pool, false);
  if (timeline.decodes) record(Op::append, executed.first.append, true);
  add_timings(journey, cache);
  const bool good = std::ranges::all_of(journey.records, [](const Record& r) {
    return r.op == to_string(Op::project) || usable(r.verdict);
  });
  journey.cache =
      good ? executed.first.cache : reference_cache(inputs, journey.layout, expected.pooled);
}

}  // namespace

void verify_cache(Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const Options& options = journey.options;
  journey.timeline =
      plan_timeline(inputs, options.schedule, journey.test_case.prefill, options.seed);
  journey.layout = lay_out_cache(
      inputs, journey.timeline.positions, options.states_per_page,
      options.planner.ring(inputs.config.index_kpool, options.schedule.drafts), options.seed);
  const auto give_up = [&](Status status, const std::string& reason) {
    for (const Op op : {Op::pool, Op::append}) {
      if (op == Op::pool ? !journey.timeline.prefills : !journey.timeline.decodes) continue;
      Record record = start_record(journey.test_case, options, op);
      record.verdict = refuse(status, reason);
      journey.records.push_back(std::move(record));
    }
    journey.cache = reference_cache(inputs, journey.layout, reference::pool(inputs));
  };
  const CacheInputs cache = stage_inputs(inputs, journey.timeline, journey.layout, options.seed);
  try {
    judge(journey, cache,
          execute(
              options, [&](StageContext& context) { return run_cache(context, cache); }, buffers_of,
              OnGpu::same_bytes));
  } catch (const Unsupported& why) {
    give_up(Status::unsupported, why.what());
  } catch (const sim::simt::ExecutorError& error) {
    give_up(Status::error, error.kind + ": " + error.what());
  }
}

}  // namespace indexpool::verify
