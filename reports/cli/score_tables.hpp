// What `score` shows.
#pragma once

#include <string>

#include "indexpool/model/latency/score.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {

// Errors by kernel and part, by regime, and of all.
reports::Table error_table(const Score& score);
// Each constant: value, interval, unit's name, how it was found.
reports::Table constant_table(const Score& score);
// Every row of the table: measured, predicted, interval.
reports::Table row_table(const Score& score);
// The terms of the held-out row of each kernel that is missed by most.
reports::Table term_table(const Score& score, const DeviceSpec& device);

// For table and md: which rows, which split, where the constants are from; then the tables. json
// and csv: the error table alone, or with `explain` the constants.
std::string score_text(const Score& score, const DeviceSpec& device, reports::Format format,
                       bool explain, bool colour);

}  // namespace indexpool::cli
