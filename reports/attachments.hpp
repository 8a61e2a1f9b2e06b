// Results of other commands as further sections of a report: how many mutants the checks kill, what
// rules of public projects would have noticed, which injected faults the checksums saw.
#pragma once

#include <string_view>

#include "indexpool/reports/report.hpp"

namespace indexpool::reports {

// scores.json and rules.json of `indexpool mutants --rules --out`, coverage.json of `indexpool
// faults --out`. They throw ConfigError with file and JSON pointer.
Attachment mutants_attachment(std::string_view text, std::string_view where);
Attachment rules_attachment(std::string_view text, std::string_view where);
Attachment faults_attachment(std::string_view text, std::string_view where);

}  // namespace indexpool::reports
