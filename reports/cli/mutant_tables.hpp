// The kill matrix, the scores and what other rules would have let through, as tables.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/cli/mutant_runs.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {

// One row per mutant; with `by_check` a column per check beside the list of those that noticed.
reports::Table kill_matrix(const std::vector<TimedRun>& runs, bool by_check);
reports::Table score_table(const std::vector<verify::Score>& scores);
// Mutants that the named check did not kill, with the proof where they are equivalent.
std::string survivors(const std::vector<TimedRun>& runs);
// By class: mutants that a rule is for, and how many of them it noticed; in the last rows all of
// them, and the outputs of correct kernels that it refused.
reports::Table rule_table(const std::vector<TimedRun>& runs);
// One row per mutant: noticed, let through, or not its business.
reports::Table rule_matrix(const std::vector<TimedRun>& runs);
std::string rule_legend();

}  // namespace indexpool::cli
