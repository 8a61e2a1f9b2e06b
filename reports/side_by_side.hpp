// The side-by-side table as data, and in colour.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

// Beyond this many records a table for people has one row per operation and kernel instead.
inline constexpr std::size_t most_rows_for_people = 60;

// One row per record. Without `every_column`: those a person reads, and only where there is
// something in them.
Table side_by_side_table(const std::vector<Record>& records, bool every_column);
std::string side_by_side(const std::vector<Record>& records, Format format, bool colour);

}  // namespace indexpool::reports
