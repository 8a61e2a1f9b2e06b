// Records of `indexpool measure` against what the cost model says today: nothing is fitted, so
// every row is held out.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/latency/score.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {

inline constexpr const char* records_adapter = "indexpool";

// Whether `path` holds records (and --adapter, if given, does not say otherwise).
bool holds_records(const std::string& path, const std::string& adapter);

struct MeasuredScore {
  Score score;
  std::vector<Prediction> predictions;  // of score.rows
};
// Every measured record of a point. `file` is for texts. Throws ConfigError without one.
MeasuredScore score_records(const std::vector<Record>& records, const std::string& file,
                            const DeviceSpec& device);
// The device that predictions of the records were made for.
std::string device_of(const std::vector<Record>& records, const std::string& file);

// For table and md: where the times come from and the errors by kernel and cache, with `explain`
// the terms of the row of each kernel that is missed by most. json and csv: the errors, or with
// `explain` the terms.
std::string measured_text(const MeasuredScore& measured, reports::Format format, bool explain,
                          bool colour);
// Every row: measured, predicted, its interval, and the seconds of each term.
reports::Table measured_rows(const MeasuredScore& measured);

}  // namespace indexpool::cli
