#include "indexpool/verify/mutants/kill.hpp"

#include <exception>
#include <set>

#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

void note_reason(const std::string& check, const std::string& reason, const std::string& named,
                 MutantRun& run) {
  const bool first_of_named = check == named && !run.kills.contains(named);
  if (run.reason.empty() || first_of_named) run.reason = check + ": " + reason;
}

// Checks that failed on one problem. An operation that the executor or the planning refused counts
// as "executor": the unmutated one is not refused.
void add_kills(const std::vector<Record>& records, const std::string& named, MutantRun& run) {
  std::set<std::string> failed;
  for (const Record& record : records) {
    const Status status = record.verdict.status;
    if (status == Status::error || status == Status::unsupported) {
      note_reason("executor", record.verdict.reason, named, run);
      failed.insert("executor");
    }
    for (const Check& check : record.verdict.checks) {
      if (check.status != Status::failed) continue;
      note_reason(check.name, check.reason, named, run);
      failed.insert(check.name);
    }
  }
  for (const std::string& check : failed) ++run.kills[check];
}

void run_problem(const Problem& problem, const Options& options, const std::string& named,
                 MutantRun& run) {
  try {
    add_kills(verify_problem(problem, options), named, run);
  } catch (const std::exception& refused) {  // a planner's, or a grid without the block to run
    note_reason("executor", refused.what(), named, run);
    ++run.kills["executor"];
    if (!run.observed.empty()) run.observed.back().clear();
  }
  ++run.problems;
}

MutantRun run_problems(const std::string& name, Options options, const std::string& named,
                       const MutantOptions& how) {
  MutantRun run;
  const bool all_problems = how.whole || how.observe;
  options.all_lane_orders = how.whole || named == "lane_order";
  if (how.observe)
    options.observe = [&](const Observation& seen) { run.observed.back().push_back(seen); };
  for (const Problem& problem : mutant_problems(name).problems) {
    if (how.observe) run.observed.emplace_back();
    run_problem(problem, options, named, run);
    if (!all_problems && run.killed_by(named)) break;
  }
  return run;
}

// The smallest ring that works: a rejected draft's successor overwrites its entry.
std::int64_t tight_ring(std::int64_t index_kpool, std::int64_t drafts) {
  return index_kpool + drafts;
}

Options options_of(const MutantSetting& setting) {
  Options options;
  options.far = setting.far;
  options.extra_kernels = kernels::kernels();  // one kernel an operation
  if (setting.tight_ring) options.planner.ring = tight_ring;
  return options;
}

}  // namespace

MutantRun run_mutant(const Mutant& mutant, const MutantCode& code, const MutantOptions& options) {
  const MutantSetting setting(mutant);
  Options run = options_of(setting);
  if (code.kernel != nullptr) {
    run.target = std::string(code.kernel->target);
    run.extra_kernels = {code.kernel, 1};
  }
  if (code.planner != nullptr) run.planner = *code.planner;
  return run_problems(mutant.problems, run, mutant.killed_by, options);
}

MutantRun run_unmutated(const MutantSetting& setting, const MutantOptions& options) {
  return run_problems(setting.problems, options_of(setting), "", options);
}

}  // namespace indexpool::verify
