// What the rules of rules.hpp say of a mutant's outputs: the very runs that the checks judged.
#pragma once

#include <vector>

#include "indexpool/verify/mutants/kill.hpp"
#include "indexpool/verify/rules.hpp"

namespace indexpool::verify {

struct ByRule {
  bool applies = false;  // the rule is for the operation that has the fault
  bool noticed = false;  // it accepts the correct outputs of some problem, and not the mutant's
  int false_alarms = 0;  // outputs of the correct kernels that it refuses: it says nothing of them
};

// In the order of accepted_rules(). Both runs observed. A run that the executor refused counts as
// noticed by everybody, since there is no output to accept.
std::vector<ByRule> judge_by_rules(const Mutant& mutant, const MutantRun& mutated,
                                   const MutantRun& correct);

}  // namespace indexpool::verify
