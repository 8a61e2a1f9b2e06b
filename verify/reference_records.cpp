// The reference against what a case's own implementation answered.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

struct Row {
  Op op;
  std::array<std::string_view, 4> steps;  // of reference::Agreement
};
constexpr Row rows[] = {
    {Op::project, {"queries", "keys", "gate_scores", "head_weights"}},
    {Op::pool, {"pooled", "pool_scales", "pool_codes", ""}},
    {Op::quantize_query, {"query_scales", "query_codes", "", ""}},
    {Op::logits, {"logits", "", "", ""}},
    {Op::topk, {"selection", "", "", ""}},
};

Record record_of(const Case& test_case, const Options& options, const Row& row,
                 const std::vector<reference::Agreement>& golden) {
  Record record = start_record(test_case, options, row.op);
  record.implementation = "reference";
  record.environment.target = "reference";
  record.reference = test_case.source;
  record.verdict = assemble({check_golden_steps(golden, row.steps)});
  for (const reference::Agreement& agreement : golden) {
    if (std::ranges::find(row.steps, agreement.step) == row.steps.end()) continue;
    record.values[agreement.step + "_compared"] = static_cast<double>(agreement.compared);
    record.values[agreement.step + "_unequal"] = static_cast<double>(agreement.unequal);
    if (row.op != Op::topk) continue;
    record.verdict.rows = agreement.compared;
    record.verdict.decidable_rows = agreement.decidable;
  }
  return record;
}

bool has_answers(const Row& row, const std::vector<reference::Agreement>& golden) {
  return std::ranges::any_of(golden, [&](const reference::Agreement& agreement) {
    return std::ranges::find(row.steps, agreement.step) != row.steps.end();
  });
}

}  // namespace

Record project_record(const Case& test_case, const Options& options,
                      const std::vector<reference::Agreement>& golden) {
  return record_of(test_case, options, rows[0], golden);
}

std::vector<Record> reference_records(const Case& test_case, const Options& options) {
  std::vector<Record> records;
  const auto golden = reference::compare_expected(test_case);
  for (const Row& row : rows) {
    if (has_answers(row, golden)) records.push_back(record_of(test_case, options, row, golden));
  }
  // Without answers to compare with, the reference can still be held against itself.
  if (records.empty()) return precision_records(test_case, options);
  return records;
}

}  // namespace indexpool::verify
