// quantize_query.
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/observe.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

Buffers buffers_of(const QueryOutput& output) {
  return {{"query codes", std::span(output.codes)}, {"query scales", bytes_of(output.scales)}};
}

std::vector<Check> checks_of(const Journey& journey, const Executed<QueryOutput>& executed) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  const QueryOutput& output = executed.first;
  std::vector<Check> checks = query_value_checks(inputs, output);
  checks.insert(checks.end(), executed.checks.begin(), executed.checks.end());
  checks.push_back(check_guards(output.guards));
  if (output.run.has_counts) {
    checks.push_back(check_traffic(output.run.declared, output.run.counted));
  }
  const auto& answers = journey.test_case.expected;
  const auto find = [&](const char* name) {
    const auto found = answers.find(name);
    return found == answers.end() ? nullptr : &found->second;
  };
  if (find("q_codes") != nullptr || find("q_scales") != nullptr) {
    checks.push_back(check_golden_queries(find("q_codes"), find("q_scales"), output));
  }
  if (!journey.golden.empty()) {
    constexpr std::string_view steps[] = {"query_scales", "query_codes"};
    checks.push_back(check_golden_steps(journey.golden, steps));
  }
  return checks;
}

}  // namespace

void verify_queries(Journey& journey) {
  const IndexerInputs& inputs = journey.test_case.inputs;
  journey.queries = reference_queries(inputs);
  if (!inputs.mode.quantised()) return;
  Record record = start_record(journey.test_case, journey.options, Op::quantize_query);
  const std::int64_t vectors = inputs.rows() * inputs.config.index_n_heads;
  record.values["vectors"] = static_cast<double>(vectors);
  try {
    const auto run = [&](StageContext& c) { return run_quantize_query(c, inputs); };
    const auto executed = execute(journey.options, run, buffers_of, OnGpu::same_bytes);
    record.environment = executed.environment;
    describe_run(executed.first.run, record);
    record.verdict = assemble(checks_of(journey, executed));
    observe_queries(journey.options, inputs, executed.first);
    record.verdict.rows = vectors;
    if (usable(record.verdict)) {
      journey.queries = {executed.first.codes, executed.first.scales};
    }
    if (wants_timing(journey.options, record.verdict)) {
      record.measurement = measure(journey.options, run).run.measurement;
    }
  } catch (const Unsupported& why) {
    record.verdict = refuse(Status::unsupported, why.what());
  } catch (const sim::simt::ExecutorError& error) {
    record.verdict = refuse(Status::error, error.kind + ": " + error.what());
  }
  journey.records.push_back(std::move(record));
}

}  // namespace indexpool::verify
