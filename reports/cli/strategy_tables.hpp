// Dynamic strategies as tables.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"
#include "indexpool/verify/strategies/strategies.hpp"

namespace indexpool::cli {

using Outcomes = std::vector<verify::strategies::Outcome>;

// What each saves and what it costs.
reports::Table strategy_table(const Outcomes& outcomes);
// Weight entropy, hits, violations, checksums, predicted latency of pooling.
reports::Table monitoring_table(const Outcomes& outcomes);
// A second stream, by the cost model; no rows where it was not asked for.
reports::Table overlap_table(const Outcomes& outcomes);
// All numbers of an outcome in one row, for machines.
reports::Table strategy_numbers(const std::vector<Record>& records);
// What the tables mean, and what there is to notice.
std::string strategy_summary(const verify::strategies::StrategyOptions& options,
                             const Outcomes& outcomes);
std::vector<reports::Attachment> strategy_sections(
    const verify::strategies::StrategyOptions& options, const Outcomes& outcomes);

}  // namespace indexpool::cli
