#include "indexpool/verify/verdict.hpp"

#include <algorithm>

namespace indexpool::verify {

Verdict assemble(std::vector<Check> checks) {
  Verdict verdict;
  verdict.status = Status::skipped;
  verdict.reason = "there was nothing to compare";
  for (Check& check : checks) {
    // A report that lists it as passed would claim what nobody looked at.
    if (check.status == Status::passed && check.compared == 0) {
      check.status = Status::skipped;
      check.reason = "there was nothing to compare";
    }
    verdict.worst_utilisation = std::max(verdict.worst_utilisation, check.utilisation);
    if (worst(verdict.status, check.status) == verdict.status) continue;
    verdict.status = check.status;
    verdict.reason = check.status == Status::passed ? "" : check.name + ": " + check.reason;
  }
  verdict.checks = std::move(checks);
  return verdict;
}

Verdict refuse(Status status, std::string reason) {
  Verdict verdict;
  verdict.status = status;
  verdict.reason = std::move(reason);
  return verdict;
}

Record start_record(const Case& test_case, const Options& options, Op op) {
  Record record;
  record.case_name = test_case.name;
  record.op = to_string(op);
  record.reference = "reference, binary64";
  record.environment.target = options.target;
  record.seed = options.seed;
  record.repeat = options.repeat;
  record.values["tokens"] = static_cast<double>(test_case.inputs.rows());
  return record;
}

void describe_run(const OpRun& run, Record& record) {
  record.implementation = run.implementation;
  record.values["launches"] = static_cast<double>(run.launches);
  if (run.launches == 0) return;
  record.declared = run.declared;
  if (run.has_counts) record.counted = run.counted;
  record.measurement = run.measurement;
}

}  // namespace indexpool::verify
