#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/foreign/judge.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

struct Row {
  Op op;
  Judged (*judge)(const ForeignTrial& trial);
};
constexpr Row rows[] = {{Op::pool, judge_pools},
                        {Op::quantize_query, judge_queries},
                        {Op::logits, judge_logits},
                        {Op::topk, judge_selection}};

bool wanted(const Row& row, const ForeignTrial& trial) {
  if (row.op == Op::quantize_query && !trial.inputs.mode.quantised()) return false;
  const auto& names = trial.contract.operations;
  return names.empty() || std::ranges::find(names, to_string(row.op)) != names.end();
}

Record record_of(const Row& row, const ForeignTrial& trial, const Options& options) {
  const Case& test_case = trial.foreign.test_case;
  Record record = start_record(test_case, options, row.op);
  record.implementation = trial.contract.implementation;
  record.environment.target = "foreign";
  if (options.progress) options.progress(test_case.name + ": " + record.op);
  Judged judged = row.judge(trial);
  if (!judged.missing.empty()) {
    const ForeignOutputs& outputs = trial.outputs;
    record.verdict =
        refuse(Status::skipped, outputs.missing.empty()
                                    ? fmt::format("{}: {}", outputs.where, judged.missing)
                                    : outputs.missing);
    return record;
  }
  record.verdict = assemble(std::move(judged.checks));
  record.verdict.rows = judged.rows;
  record.verdict.decidable_rows = judged.decidable_rows;
  return record;
}

}  // namespace

std::vector<Record> check_foreign(const ForeignCase& foreign, const ForeignOutputs& outputs,
                                  const ForeignContract& contract, const Options& options) {
  validate(contract, foreign);
  validate(outputs, foreign, contract);
  ForeignTrial trial{foreign, outputs, contract, foreign.test_case.inputs};
  trial.inputs.mode = mode_of(contract, foreign);
  std::vector<Record> records;
  for (const Row& row : rows) {
    if (wanted(row, trial)) records.push_back(record_of(row, trial, options));
  }
  return records;
}

}  // namespace indexpool::verify
