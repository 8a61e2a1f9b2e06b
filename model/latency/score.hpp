// How well predictions meet a table of measured times: fitted on some rows, judged on the others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/latency/timing_table.hpp"

namespace indexpool {

struct ScoreOptions {
  double held_out_share = 0.3;
  std::uint64_t seed = 1;
  // Constants from here instead of a fit: all rows are held out, unless the set was fitted on this
  // table with this share and seed.
  std::optional<ImplementationSet> constants;
  std::function<void(const std::string& kernel)> advance;  // progress; may be empty
};

struct ScoredRow {
  const TimedRow* row = nullptr;
  KernelEstimate predicted;
  bool held_out = false;
  double error() const { return predicted.time.value / row->time.value - 1; }
  bool inside() const { return predicted.low <= row->time && row->time <= predicted.high; }
};

// Of the held-out rows of a group; the fitted ones beside, for comparison.
struct ErrorSummary {
  std::string kernel, part, regime;  // "all" where a group is not split
  std::int64_t fitted = 0, held_out = 0;
  double mean = 0, median = 0, p95 = 0;  // absolute relative error
  double bias = 0;                       // median of predicted / measured - 1
  double coverage = 0;                   // share inside the 90 % interval
  double fitted_mean = 0;
};

struct Score {
  TimingTable table;
  std::string device;
  ImplementationSet constants;
  bool fitted_here = false;
  std::vector<ScoredRow> rows;  // point into `table`
  // By kernel and part, then by regime, then all.
  std::vector<ErrorSummary> summaries;
};

// Throws ConfigError when nothing is held out, when a kernel has too few rows to fit, or when
// `constants` know a kernel of the table not.
Score score_table(TimingTable table, const DeviceSpec& device, const ScoreOptions& options);

}  // namespace indexpool
