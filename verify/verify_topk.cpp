// topk: on the logits of the case, and on logits made to be difficult.
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/observe.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

Buffers buffers_of(const TopkOutput& output) { return {{"selection", bytes_of(output.selection)}}; }

Executed<TopkOutput> select_from(const Journey& journey, const std::vector<float>& logits) {
  const TopkInputs stage{journey.test_case.inputs, logits, journey.stride};
  auto executed = execute(
      journey.options, [&](StageContext& c) { return run_topk(c, stage); }, buffers_of,
      OnGpu::same_bytes);
  observe_selection(journey.options, journey.test_case.inputs, logits, journey.stride,
                    executed.first.selection);
  return executed;
}

// Everything of one run but the certificate.
std::vector<Check> checks_of(const IndexerInputs& inputs, const std::vector<float>& logits,
                             std::int64_t stride, const Executed<TopkOutput>& executed) {
  std::vector<Check> checks{check_tie_rule(inputs, logits, stride, executed.first.selection)};
  checks.insert(checks.end(), executed.checks.begin(), executed.checks.end());
  checks.push_back(check_guards(executed.first.guards));
  const OpRun& run = executed.first.run;
  if (run.has_counts) checks.push_back(check_traffic(run.declared, run.counted));
  return checks;
}

}  // namespace

void verify_topk(Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  Record record = start_record(journey.test_case, journey.options, Op::topk);
  try {
    const auto executed = select_from(journey, journey.logits);
    const StoredPools pools = read_stored(inputs, journey.layout, journey.cache);
    // Logits that overflowed may be NaN, in a correct kernel too.
    const auto nans = nan_pools(inputs, journey.logits, journey.stride);
    Certificate certificate = check_selection(inputs, journey.bounds, pools,
                                              executed.first.selection, journey.about_ties, nans);
    std::vector<Check> checks{certificate.check,
                              check_structure(inputs, executed.first.selection, nans)};
    const auto ordinary = checks_of(inputs, journey.logits, journey.stride, executed);
    const auto difficult_logits = adversarial_logits(inputs, journey.stride, journey.options.seed);
    const auto difficult =
        checks_of(inputs, difficult_logits, journey.stride, select_from(journey, difficult_logits));
    for (std::size_t i = 0; i < ordinary.size(); ++i) {
      Check second = difficult[i];
      if (!second.reason.empty()) second.reason = "difficult logits: " + second.reason;
      checks.push_back(merge(ordinary[i], second));
    }
    if (!journey.golden.empty()) {
      constexpr std::string_view steps[] = {"selection"};
      checks.push_back(check_golden_steps(journey.golden, steps));
    }
    record.environment = executed.environment;
    describe_run(executed.first.run, record);
    record.verdict = assemble(std::move(checks));
    record.verdict.rows = certificate.rows;
    record.verdict.decidable_rows = certificate.decidable_rows;
    if (wants_timing(journey.options, record.verdict)) {
      const TopkInputs stage{inputs, journey.logits, journey.stride};
      record.measurement = measure(journey.options, [&](StageContext& c) {
                             return run_topk(c, stage);
                           }).run.measurement;
    }
  } catch (const Unsupported& why) {
    record.verdict = refuse(Status::unsupported, why.what());
  } catch (const sim::simt::ExecutorError& error) {
    record.verdict = refuse(Status::error, error.kind + ": " + error.what());
  }
  journey.records.push_back(std::move(record));
}

}  // namespace indexpool::verify
