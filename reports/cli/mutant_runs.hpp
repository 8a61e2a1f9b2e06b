// Runs many mutants, on some threads, and times them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "indexpool/verify/mutants/by_rules.hpp"
#include "indexpool/verify/mutants/kill.hpp"
#include "indexpool/verify/mutants/module.hpp"
#include "indexpool/verify/mutants/score.hpp"

namespace indexpool::cli {

struct TimedRun {
  const verify::Mutant* mutant = nullptr;
  verify::MutantRun run;
  std::vector<verify::ByRule> rules;  // when asked for, in the order of accepted_rules()
  double seconds = 0;

  verify::Fate fate() const {
    return {mutant, run.killed(), verify::killed_as_named(*mutant, run)};
  }
};

struct MutantRunOptions {
  bool quick = false;  // up to the first kill by the named check
  bool rules = false;
  int jobs = 1;
};

// In the order of `chosen`. `progress` is called on this thread.
std::vector<TimedRun> run_mutants(const std::vector<const verify::Mutant*>& chosen,
                                  const verify::MutantModule& module,
                                  const MutantRunOptions& options,
                                  const std::function<void(const std::string&)>& progress);

}  // namespace indexpool::cli
