#include "indexpool/verify/mutants/by_rules.hpp"

#include <algorithm>

namespace indexpool::verify {
namespace {

void judge_problem(const Rule& rule, const std::vector<Observation>& mutated,
                   const std::vector<Observation>& correct, ByRule& result) {
  if (mutated.size() != correct.size()) {
    result.noticed = true;
    return;
  }
  for (std::size_t i = 0; i < correct.size(); ++i) {
    if (!applies(rule, correct[i].op)) continue;
    if (!rule.accepts(correct[i], correct[i])) {
      ++result.false_alarms;
    } else if (mutated[i].found.size() != correct[i].found.size() ||
               !rule.accepts(mutated[i], correct[i])) {
      result.noticed = true;
    }
  }
}

}  // namespace

std::vector<ByRule> judge_by_rules(const Mutant& mutant, const MutantRun& mutated,
                                   const MutantRun& correct) {
  std::vector<ByRule> results;
  for (const Rule& rule : accepted_rules()) {
    ByRule result;
    // Only outputs of the shipped indexer's operations are observed.
    result.applies =
        applies(rule, mutant.kernel == "topk" ? Op::topk : Op::pool) &&
        std::ranges::any_of(correct.observed, [](const auto& problem) { return !problem.empty(); });
    for (std::size_t i = 0; result.applies && i < correct.observed.size(); ++i)
      judge_problem(rule, mutated.observed[i], correct.observed[i], result);
    results.push_back(result);
  }
  return results;
}

}  // namespace indexpool::verify
