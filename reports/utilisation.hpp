// How much of each bound errors use (error over bound), over many runs: how tight bounds are, and
// which are loose.
//
// A campaign of many runs leaves one record per group, with one check whose utilisation is the
// worst of all runs, and in Record::values:
//   utilisation_runs      runs in which the check compared something
//   utilisation_campaign  problems of the whole campaign
//   utilisation_elements  compared elements of all runs
//   utilisation_exact     runs without any error
//   utilisation_p10, _median, _p90   of the runs' worst, where there was an error
//   utilisation_octave_k  runs whose worst lies in [2^-(k+1), 2^-k)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

struct UtilisationRow {
  std::string op, kernel, check;
  std::string of;  // "all", or the part of a campaign it is about: "mode bf16", "fill tiny"
  std::int64_t runs = 0, campaign = 0, elements = 0, exact = 0;
  double p10 = 0, median = 0, p90 = 0, worst = 0;  // of the runs' worst; exact runs left out
  std::vector<std::int64_t> octaves;               // runs by octave below 1, the first is [1/2, 1)
};

// One group's runs. `worst_of_runs` may come in any order.
UtilisationRow summarise(UtilisationRow names, std::vector<double> worst_of_runs);
Record utilisation_record(const UtilisationRow& row, const std::string& repeat);

// Rows of campaign records as they are; of other records by operation, kernel and check, a record
// being a run. Checks that no record has an error figure for (exact ones, admissible sets) are left
// out. In pipeline order, "all" first.
std::vector<UtilisationRow> utilisation_rows(const std::vector<Record>& records);

// Looser than a thousand times the largest error of a campaign of ten thousand runs. Where there
// was no error at all (inputs that leave nothing to round), nothing is known.
inline constexpr std::int64_t campaign_for_loose = 10'000;
inline constexpr double loose_below = 1e-3;
bool loose(const UtilisationRow& row);
// Why the bound is what it is: what it adds up in the worst case and real errors do not.
std::string_view why_worst_case(std::string_view op, std::string_view check);

Table utilisation_table(const std::vector<UtilisationRow>& rows);
Table loose_table(const std::vector<UtilisationRow>& rows);  // with the reasons

std::string utilisation_markdown(const std::vector<Record>& records);  // a section, or nothing
std::string utilisation_markup(const std::vector<Record>& records);    // of the HTML section

}  // namespace indexpool::reports
