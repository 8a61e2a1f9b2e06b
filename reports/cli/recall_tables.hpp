// Recall as tables, records and a page.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/recall_page.hpp"
#include "indexpool/reports/table.hpp"
#include "indexpool/verify/recall/compare.hpp"

namespace indexpool::cli {

// A data set and what was found on it; the sequences are no longer needed.
struct RecallResult {
  std::string data, about, unit;
  std::vector<verify::recall::Row> rows;  // ranked
  std::string command;                    // repeats this data set alone
};

// "4:1" for each ratio, for people: one cell for a number and its interval.
reports::Table ranking_table(const std::vector<RecallResult>& results);
// The same for machines: every number in a column of its own.
reports::Table recall_table(const std::vector<RecallResult>& results);
// Which one leads, a line for each data set and ratio.
std::string leaders_text(const std::vector<RecallResult>& results);
std::vector<Record> recall_records(const std::vector<RecallResult>& results, std::uint64_t seed);

}  // namespace indexpool::cli
