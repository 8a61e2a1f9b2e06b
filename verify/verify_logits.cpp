// logits: every token of the batch queries the finished cache.
#include <cmath>

#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/observe.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

Buffers buffers_of(const LogitsOutput& output) {
  return {{"logits", bytes_of(output.logits), 1, 1}};
}

// The reference's own logits in binary32, -infinity where nothing is visible.
std::vector<float> reference_logits(const IndexerInputs& inputs, const LogitBounds& bounds,
                                    std::int64_t stride) {
  std::vector<float> logits(static_cast<std::size_t>(inputs.rows() * stride), -INFINITY);
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto& expected = bounds.sequences[static_cast<std::size_t>(query.request)];
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    for (std::int64_t p = 0; p < visible; ++p) {
      logits[static_cast<std::size_t>(row * stride + p)] = static_cast<float>(
          expected.value[static_cast<std::size_t>(query.position * expected.shape[1] + p)]);
    }
    ++row;
  }
  return logits;
}

double visible_pairs(const IndexerInputs& inputs) {
  double pairs = 0;
  for (const auto& query : query_rows(inputs)) {
    pairs +=
        static_cast<double>(reference::visible_pools(query.position, inputs.config.index_kpool));
  }
  return pairs;
}

std::vector<Check> checks_of(const Journey& journey, const LogitBounds& bounds,
                             const Executed<LogitsOutput>& executed) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const LogitsOutput& output = executed.first;
  std::vector<Check> checks{
      check_logit_bound(inputs, bounds, output.logits, journey.stride, journey.about_ties),
      check_logits_untouched(inputs, output.logits, journey.stride)};
  checks.insert(checks.end(), executed.checks.begin(), executed.checks.end());
  checks.push_back(check_guards(output.guards));
  if (output.run.has_counts) {
    checks.push_back(check_traffic(output.run.declared, output.run.counted));
  }
  if (!journey.golden.empty()) {
    constexpr std::string_view steps[] = {"logits"};
    checks.push_back(check_golden_steps(journey.golden, steps));
  }
  return checks;
}

// The operands as the operations before left them.
Operands stored_operands(const Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const DType code = operand_dtype(inputs.mode);
  return {decode(code, journey.queries.codes),
          {journey.queries.scales.begin(), journey.queries.scales.end()},
          read_stored(inputs, journey.layout, journey.cache),
          smallest_normal(code)};
}

// One kernel: the `choice`-th that takes the problem. Hands on its logits when they are right and
// no other's were.
void verify_one(Journey& journey, const Operands& operands, std::size_t choice) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  Record record = start_record(journey.test_case, journey.options, Op::logits);
  record.values["logits"] = visible_pairs(inputs);
  try {
    const LogitsInputs stage{
        inputs,        journey.layout, journey.cache, journey.queries.codes, journey.queries.scales,
        journey.stride};
    const auto run = [&](StageContext& c) { return run_logits(c, stage); };
    const auto executed = execute(journey.options, run, buffers_of, OnGpu::matrix_cores, choice);
    const bool nothing_visible = executed.first.run.launches == 0;
    if (nothing_visible && choice > 0) return;  // the same for every kernel
    record.environment = executed.environment;
    describe_run(executed.first.run, record);
    if (nothing_visible) record.implementation = "none (no pool is visible)";
    const LogitBounds bounds =
        logit_bounds(inputs, operands, accumulation_model(executed.first.run.accumulation));
    record.verdict = assemble(checks_of(journey, bounds, executed));
    observe_logits(journey.options, inputs, bounds, executed.first.logits, journey.stride);
    record.verdict.rows = inputs.rows();
    if (journey.logits.empty() && usable(record.verdict)) {
      journey.bounds = bounds;
      journey.logits = executed.first.logits;
    }
    if (wants_timing(journey.options, record.verdict)) {
      record.measurement = measure(journey.options, run, choice).run.measurement;
    }
  } catch (const Unsupported& why) {
    if (choice > 0) return;  // no further kernel
    record.verdict = refuse(Status::unsupported, why.what());
  } catch (const sim::simt::ExecutorError& error) {
    record.verdict = refuse(Status::error, error.kind + ": " + error.what());
  }
  journey.records.push_back(std::move(record));
}

}  // namespace

void verify_logits(Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  journey.stride = logits_stride(inputs, journey.options.seed);
  const Operands operands = stored_operands(journey);
  for (std::size_t choice = 0; choice < kernels_of_an_operation(journey.options); ++choice) {
    verify_one(journey, operands, choice);
  }
  if (!journey.logits.empty()) return;
  journey.bounds = logit_bounds(inputs, operands, reference::f32_any_order());
  journey.logits = reference_logits(inputs, journey.bounds, journey.stride);
}

}  // namespace indexpool::verify
