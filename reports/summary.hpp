// What a set of records says as a whole: counts, groups, what to look at first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

// Position of an operation in the pipeline; unknown names come last.
int operation_rank(std::string_view op);
// Runs once per prompt (project, pool), not in every decode step.
bool is_prefill(std::string_view op);

std::vector<std::pair<Status, std::int64_t>> status_counts(const std::vector<Record>& records);

// Whether decidable rows mean something: a selection was checked.
bool selects(const Record& record);

// Records of one operation, implementation, executor and reference.
struct Group {
  std::string op, reference, implementation, target;
  Status status = Status::skipped;  // the worst
  std::int64_t records = 0, failed = 0, checks = 0, rows = 0, decidable_rows = 0;
  double worst_utilisation = 0;
};
std::vector<Group> grouped(const std::vector<Record>& records);  // in pipeline order
Table comparison_table(const std::vector<Record>& records);      // one row per group

// Indices of records that need a reader (error, failed, untrusted, marginal, unsupported, skipped),
// the worst first.
std::vector<std::size_t> to_look_at(const std::vector<Record>& records);

// "Every check of 5 operations held; the worst error is 21 % of its bound."
std::string headline(const std::vector<Record>& records);

// One prediction per operation, implementation, device and context length, in pipeline order.
struct Forecast {
  std::string op, implementation;
  Prediction prediction;
  std::int64_t tokens = 0;  // 0: the record does not say
  std::int64_t layers = 1;
  double load_bytes = 0, store_bytes = 0;
  double hbm_bytes = 0, l2_bytes = 0, shared_bytes = 0, matrix_flop = 0, f32_flop = 0;
  double warp_instructions = 0;
};
std::vector<Forecast> forecasts(const std::vector<Record>& records);
std::int64_t total_tokens(const Record& record);  // of the record's own problem; 0 without one

}  // namespace indexpool::reports
