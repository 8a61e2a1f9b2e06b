// Records of a problem that is judged operation by operation, apart from the indexer's journey.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "indexpool/model/problem.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/sim/simt/session.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/verdict.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

struct ProblemJudge {
  const Problem& problem;
  const Options& options;
  std::vector<Record> records;

  Record start(Op op) const {
    Record record;
    record.case_name = describe(problem);
    record.op = to_string(op);
    record.reference = "reference, binary64";
    record.environment.target = options.target;
    record.seed = options.seed;
    record.repeat = options.repeat;
    record.problem = problem;
    return record;
  }
  template <class Output>
  static Record& finish(const Executed<Output>& executed, std::vector<Check> checks,
                        Record& record) {
    const OpRun& run = executed.first.run;
    checks.insert(checks.end(), executed.checks.begin(), executed.checks.end());
    checks.push_back(check_guards(executed.first.guards));
    if (run.has_counts) checks.push_back(check_traffic(run.declared, run.counted));
    record.environment = executed.environment;
    describe_run(run, record);
    record.verdict = assemble(std::move(checks));
    return record;
  }
  // `judge(record)` fills the verdict; what nobody takes or the executor refuses is a verdict too.
  template <class Run>
  void record(Op op, const Run& judge) {
    Record record = start(op);
    try {
      judge(record);
    } catch (const Unsupported& why) {
      record.verdict = refuse(Status::unsupported, why.what());
    } catch (const sim::simt::ExecutorError& error) {
      record.verdict = refuse(Status::error, error.kind + ": " + error.what());
    }
    records.push_back(std::move(record));
  }
  template <class Run>
  void record(Op op, double groups, const Run& judge) {
    record(op, [&](Record& record) {
      record.values["groups"] = groups;
      judge(record);
    });
  }
  template <class Run>
  auto once(const Run& run) const {
    const auto target = make_target(options, Way{}, false);
    StageContext context{*target, make_lookup(options), false, options.planner};
    return run(context);
  }
};

}  // namespace indexpool::verify
