// Bugs of captured graphs: a launch keeps the addresses it was captured with. A caching allocator
// does not unmap what is freed, so a buffer of an earlier step can still be read and written.
#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/field/scenario.hpp"
#include "indexpool/verify/field/trial.hpp"
#include "indexpool/verify/target_memory.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

// Stays unlike -1, which means "unused".
constexpr std::byte unwritten{0x7f};

template <class T>
void fill(kernels::Target& target, const TargetBuffer& buffer, const std::vector<T>& values) {
  target.upload(buffer.data(), values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)));
}

// The cache and what append reads, and its arguments as captured.
struct CapturedAppend {
  TargetBuffer keys, gate_scores, ape, cache, tail, jobs;
  std::vector<TargetBuffer> slots;  // the captured one first
  kernels::AppendArgs args;
};

CapturedAppend capture_append(kernels::Target& target, const CacheInputs& cache) {
  const CacheLayout& layout = cache.layout;
  CapturedAppend graph{upload(target, "keys", cache.keys),
                       upload(target, "gate scores", cache.gate_scores),
                       upload(target, "ape", cache.inputs.ape),
                       TargetBuffer(target, "cache pages", layout.cache_bytes()),
                       TargetBuffer(target, "tail ring", layout.tail_bytes()),
                       TargetBuffer(target, "append jobs", sizeof(kernels::AppendJob)),
                       {},
                       {}};
  graph.slots.emplace_back(target, "slots", static_cast<std::int64_t>(sizeof(std::int64_t)));
  kernels::AppendArgs& args = graph.args;
  args.shape = {cache.inputs.config, cache.inputs.mode};
  args.keys = graph.keys.data();
  args.gate_scores = graph.gate_scores.data();
  args.ape = graph.ape.as<float>();
  args.jobs = graph.jobs.as<kernels::AppendJob>();
  args.job_count = 1;
  args.slots = graph.slots.front().as<std::int64_t>();
  args.tail = {graph.tail.data(), layout.tail_block_stride, static_cast<std::int32_t>(layout.ring)};
  args.cache = {graph.cache.data(), layout.page_stride,
                static_cast<std::int32_t>(layout.states_per_page)};
  return graph;
}

// One token of one request: its plan goes to the buffers, then the graph is replayed.
void replay_step(kernels::Target& target, CapturedAppend& graph, const CacheInputs& cache,
                 const Part& part, FieldSide side) {
  const CacheLayout& layout = cache.layout;
  const kernels::StepRequest request{part.start, part.offered, part.first_row, layout.tail_block[0],
                                     layout.table(0)};
  const kernels::AppendPlan plan =
      kernels::plan_append({&request, 1}, cache.inputs.config.index_kpool, layout.states_per_page);
  fill(target, graph.jobs, plan.jobs);
  if (side == FieldSide::stand_in && part.start > 0) {
    graph.slots.push_back(upload(target, "slots of a step", plan.slots));
  } else {
    fill(target, graph.slots.front(), plan.slots);
  }
  executor_kernel("append").launch(graph.args, target.context());
}

std::vector<Check> mapping_cloned_each_step(FieldSide side) {
  Problem problem = small_problem({13});
  problem.schedule.prefill_tokens = 0;
  const Case test_case = make_case(problem);
  const IndexerInputs& inputs = test_case.inputs;
  const Timeline timeline = plan_timeline(inputs, problem.schedule, 0, problem.seed);
  const CacheLayout layout =
      lay_out_cache(inputs, timeline.positions, problem.states_per_page,
                    kernels::ring_size(inputs.config.index_kpool, 0), problem.seed);
  const CacheInputs cache = stage_trial(inputs, timeline, layout, problem.seed);
  const auto target = kernels::make_simt_target();
  CapturedAppend graph = capture_append(*target, cache);
  for (const Round& round : timeline.rounds) {
    replay_step(*target, graph, cache, round.decode.front(), side);
  }
  CacheOutput output;
  output.cache = graph.cache.download();
  output.tail = graph.tail.download();
  output.guards = target->check_guards();
  return judge_trial(cache, output, problem);
}

// One launch of topk, replayed on three sets of logits in one buffer.
std::vector<Check> topk_output_each_call(FieldSide side) {
  const Problem problem = small_problem({77});
  const IndexerInputs inputs = make_case(problem).inputs;
  const std::int64_t stride = logits_stride(inputs, problem.seed);
  const std::int64_t bytes = inputs.rows() * inputs.config.selection_width() * 4;
  const auto target = kernels::make_simt_target();
  const TargetBuffer logits(*target, "logits", inputs.rows() * stride * 4);
  const TargetBuffer rows = upload(*target, "query rows", query_rows(inputs));
  std::vector<TargetBuffer> outputs;
  outputs.emplace_back(*target, "selection", bytes, unwritten);
  kernels::TopkArgs args;
  args.shape = {inputs.config, inputs.mode};
  args.logits = logits.as<float>();
  args.logits_stride = stride;
  args.rows = rows.as<kernels::QueryRow>();
  args.row_count = inputs.rows();
  args.selection = outputs.front().as<std::int32_t>();
  std::vector<Check> checks;
  for (const std::uint64_t replay : {1, 2, 3}) {
    if (side == FieldSide::stand_in && replay > 1)
      outputs.emplace_back(*target, "selection of a call", bytes, unwritten);
    const std::vector<float> values = adversarial_logits(inputs, stride, replay);
    fill(*target, logits, values);
    executor_kernel("topk").launch(args, target->context());
    const auto selection = values_of<std::int32_t>(outputs.back().download());
    checks.push_back(check_tie_rule(inputs, values, stride, selection));
  }
  return checks;
}

}  // namespace

std::span<const FieldRow> replay_scenarios() {
  static constexpr FieldRow rows[] = {{"mapping_cloned_each_step", mapping_cloned_each_step},
                                      {"topk_output_each_call", topk_output_each_call}};
  return rows;
}

}  // namespace indexpool::verify
