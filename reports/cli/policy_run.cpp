#include "indexpool/reports/cli/policy_run.hpp"

#include <fmt/format.h>

#include "indexpool/model/policy.hpp"
#include "indexpool/reports/cli/forecast_record.hpp"
#include "indexpool/reports/cli/policy_forecast.hpp"
#include "indexpool/reports/cli/worked_pages.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

std::vector<Problem> problems_of(const PolicyRun& run) {
  const PolicyInfo& policy = find_policy(run.policy);
  std::vector<Problem> problems;
  for (const NumericMode& mode : pooling_modes()) {
    if (policy.grouping == Grouping::scores && mode.name != "f32") continue;
    Problem problem;
    problem.policy = policy.name;
    problem.mode = mode.name;
    problem.lengths = run.lengths;
    problem.indexer.index_kpool = policy.index_kpool;
    problem.indexer.index_head_dim = policy.head_dim;
    problem.indexer.index_n_heads = policy.heads;
    validate(problem, "problem");
    problems.push_back(problem);
  }
  return problems;
}

void attach_policy(const Problem& problem, std::int64_t tokens, const DeviceSpec& device,
                   std::vector<Record>& records) {
  const PolicyBytes bytes = policy_bytes(problem, tokens);
  for (const OperationForecast& forecast : policy_forecast(problem, tokens, device)) {
    Record* const record = add_forecast(forecast, tokens, records);
    if (record == nullptr) continue;
    record->values["unpooled_bytes"] = static_cast<double>(bytes.vectors);
    record->values["pooled_bytes"] = static_cast<double>(bytes.pooled);
  }
}

}  // namespace

reports::ReportInput run_policy(const PolicyRun& run, const DeviceSpec& device,
                                Progress& progress) {
  const PolicyInfo& policy = find_policy(run.policy);
  reports::ReportInput input;
  for (const Problem& problem : problems_of(run)) {
    verify::Options how;
    how.target = run.target;
    how.repeat = repeat_line(problem);
    if (run.target != "simt") how.repeat += " --target " + run.target;
    how.progress = [&](const std::string& step) { progress.show(step); };
    std::vector<Record> records = verify::verify_problem(problem, how);
    attach_policy(problem, run.tokens, device, records);
    input.records.insert(input.records.end(), records.begin(), records.end());
  }
  for (Record& record : input.records) record.environment.version = INDEXPOOL_VERSION;
  const std::string_view by = policy.published;
  input.title = fmt::format("Pooling policy {}{}: {}", policy.name,
                            by.empty()       ? ""
                            : by.size() == 1 ? fmt::format(" (published form {})", by)
                                             : fmt::format(" ({})", by),
                            policy.formula);
  input.device = device;
  input.attachments = worked_pages(run.policy, run.tokens);
  return input;
}

}  // namespace indexpool::cli
