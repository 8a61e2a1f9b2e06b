// Runs a mutant through its problems and says which checks noticed.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "indexpool/verify/mutants/module.hpp"
#include "indexpool/verify/mutants/mutant.hpp"
#include "indexpool/verify/observation.hpp"

namespace indexpool::verify {

struct MutantRun {
  std::map<std::string, int> kills;  // by check: on how many problems it failed
  int problems = 0;                  // that were run
  std::string reason;                // the first violation of the named check, or of any
  // By problem, when asked for: what each operation gave; empty for a problem that was refused.
  std::vector<std::vector<Observation>> observed;

  bool killed() const { return !kills.empty(); }
  bool killed_by(const std::string& check) const { return kills.contains(check); }
};

// By the check its row names. Of a mutant behind gigabytes also by the executor: whether an address
// that has wrapped lies in another buffer or in none depends on where the system put them.
inline bool killed_as_named(const Mutant& mutant, const MutantRun& run) {
  return run.killed_by(mutant.killed_by) || (mutant.far && run.killed_by("executor"));
}

struct MutantOptions {
  bool whole = false;    // all problems and lane orders; otherwise up to the first kill by name
  bool observe = false;  // all problems
};

MutantRun run_mutant(const Mutant& mutant, const MutantCode& code, const MutantOptions& options);
// What a mutant is run on.
struct MutantSetting {
  std::string problems;
  bool far = false, tight_ring = false;

  explicit MutantSetting(const Mutant& mutant)
      : problems(mutant.problems), far(mutant.far), tight_ring(mutant.tight_ring) {}
  auto operator<=>(const MutantSetting&) const = default;
};
// The kernels and the planner as they are, on the same problems: nothing may be killed.
MutantRun run_unmutated(const MutantSetting& setting, const MutantOptions& options);

}  // namespace indexpool::verify
