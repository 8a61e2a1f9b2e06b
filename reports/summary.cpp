#include "indexpool/reports/summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/status_style.hpp"

namespace indexpool::reports {
namespace {

constexpr std::array<std::string_view, 14> pipeline_order = {"project",
                                                             "pool_weights",
                                                             "pool",
                                                             "append",
                                                             "quantize_query",
                                                             "logits",
                                                             "topk",
                                                             "safe_gate",
                                                             "linear_attention",
                                                             "sparse_attention",
                                                             "gate_fusion",
                                                             "composite_attention",
                                                             "attention_feedback",
                                                             "pipeline"};

auto group_key(const Record& record) {
  return std::make_tuple(operation_rank(record.op), record.op, record.implementation,
                         record.environment.target, record.reference);
}

bool is_failure(Status status) { return status == Status::failed || status == Status::error; }

int severity(Status status) {
  const auto styles = status_styles();
  const auto row = std::find_if(styles.begin(), styles.end(),
                                [&](const StatusStyle& s) { return s.status == status; });
  return static_cast<int>(row - styles.begin());
}

void add(Group& group, const Record& record) {
  const Verdict& verdict = record.verdict;
  group.status = group.records == 0 ? verdict.status : worst(group.status, verdict.status);
  group.records += 1;
  group.failed += is_failure(verdict.status) ? 1 : 0;
  group.checks += static_cast<std::int64_t>(verdict.checks.size());
  if (selects(record)) {
    group.rows += verdict.rows;
    group.decidable_rows += verdict.decidable_rows;
  }
  group.worst_utilisation = std::max(group.worst_utilisation, verdict.worst_utilisation);
}

double value_or(const Record& record, const char* name, double otherwise) {
  const auto found = record.values.find(name);
  return found == record.values.end() ? otherwise : found->second;
}

}  // namespace

int operation_rank(std::string_view op) {
  const auto* found = std::find(pipeline_order.begin(), pipeline_order.end(), op);
  return static_cast<int>(found - pipeline_order.begin());
}

bool is_prefill(std::string_view op) {
  return op == "project" || op == "pool_weights" || op == "pool" || op == "composite_attention";
}

std::vector<std::pair<Status, std::int64_t>> status_counts(const std::vector<Record>& records) {
  std::vector<std::pair<Status, std::int64_t>> counts;
  for (const StatusStyle& row : status_styles()) {
    const auto count = std::count_if(records.begin(), records.end(), [&](const Record& record) {
      return record.verdict.status == row.status;
    });
    if (count > 0) counts.emplace_back(row.status, count);
  }
  return counts;
}

bool selects(const Record& record) {
  const auto& checks = record.verdict.checks;
  return record.verdict.decidable_rows > 0 ||
         std::any_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.name == "selection"; });
}

std::vector<Group> grouped(const std::vector<Record>& records) {
  std::map<decltype(group_key(records.front())), Group> groups;
  for (const Record& record : records) {
    Group& group = groups[group_key(record)];
    group.op = record.op;
    group.reference = record.reference;
    group.implementation = record.implementation;
    group.target = record.environment.target;
    add(group, record);
  }
  std::vector<Group> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

Table comparison_table(const std::vector<Record>& records) {
  Table table{{{"op", "operation"},
               {"reference", "reference"},
               {"kernel", "kernel"},
               {"executor", "runs on"},
               {"status", "verdict"},
               {"worst_error_over_bound", "error / bound", true},
               {"decidable_rows", "decidable rows", true},
               {"checks", "checks", true},
               {"records", "records", true}},
              {}};
  for (const Group& group : grouped(records)) {
    const std::string rows =
        group.rows == 0
            ? ""
            : fmt::format("{} of {}", format_count(group.decidable_rows), format_count(group.rows));
    table.rows.push_back({group.op,
                          group.reference,
                          group.implementation,
                          group.target,
                          status_cell(group.status),
                          {group.checks == 0 ? "" : format_utilisation(group.worst_utilisation),
                           group.worst_utilisation},
                          {rows, group.decidable_rows},
                          {format_count(group.checks), group.checks},
                          {format_count(group.records), group.records}});
  }
  return table;
}

std::vector<std::size_t> to_look_at(const std::vector<Record>& records) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].verdict.status != Status::passed) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return severity(records[a].verdict.status) < severity(records[b].verdict.status);
  });
  return order;
}

std::string headline(const std::vector<Record>& records) {
  if (records.empty()) return "There are no records, so nothing was shown.";
  std::set<std::string> operations;
  std::int64_t failed = 0, untrusted = 0, unsupported = 0, ran = 0;
  double utilisation = 0;
  for (const Record& record : records) {
    const Status status = record.verdict.status;
    failed += is_failure(status) ? 1 : 0;
    untrusted += status == Status::untrusted ? 1 : 0;
    unsupported += status == Status::unsupported ? 1 : 0;
    if (status != Status::skipped && status != Status::unsupported) {
      ran += 1;
      operations.insert(record.op);
    }
    utilisation = std::max(utilisation, record.verdict.worst_utilisation);
  }
  if (ran == 0) return "No record has a verdict: everything was skipped or unsupported.";
  if (failed > 0) {
    return fmt::format("{} of {} records did not hold; the first ones are listed below.",
                       format_count(failed), format_count(ran));
  }
  if (untrusted > 0) {
    return fmt::format("{} of {} records prove nothing: a check of theirs could not have failed.",
                       format_count(untrusted), format_count(ran));
  }
  const std::string margin =
      utilisation == 0 ? "every comparison is exact"
                       : "the largest error is " + format_percent(utilisation) + " of its bound";
  const std::string not_run =
      unsupported == 0 ? ""
                       : fmt::format(" {} of {} records are unsupported and were not verified.",
                                     format_count(unsupported), format_count(ran + unsupported));
  return fmt::format("Every check of {} operation{} held; {}.{}", operations.size(),
                     operations.size() == 1 ? "" : "s", margin, not_run);
}

std::int64_t total_tokens(const Record& record) {
  if (!record.problem) return 0;
  const auto& lengths = record.problem->lengths;
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::vector<Forecast> forecasts(const std::vector<Record>& records) {
  using Key = std::tuple<std::int64_t, std::string, int, std::string, std::string>;
  std::map<Key, Forecast> found;
  for (const Record& record : records) {
    if (!record.prediction) continue;
    Forecast forecast;
    forecast.op = record.op;
    forecast.implementation = record.implementation;
    forecast.prediction = *record.prediction;
    forecast.tokens = static_cast<std::int64_t>(
        value_or(record, "predicted_tokens", static_cast<double>(total_tokens(record))));
    forecast.layers = static_cast<std::int64_t>(value_or(record, "indexer_layers", 1));
    forecast.load_bytes = value_or(record, "predicted_load_bytes", 0);
    forecast.store_bytes = value_or(record, "predicted_store_bytes", 0);
    forecast.hbm_bytes = static_cast<double>(record.prediction->hbm_bytes.value);
    forecast.l2_bytes = value_or(record, "predicted_l2_bytes", 0);
    forecast.shared_bytes = value_or(record, "predicted_shared_bytes", 0);
    forecast.matrix_flop = value_or(record, "predicted_matrix_flop", 0);
    forecast.f32_flop = value_or(record, "predicted_f32_flop", 0);
    forecast.warp_instructions = value_or(record, "predicted_warp_instructions", 0);
    const Key key{forecast.tokens, forecast.prediction.device, operation_rank(record.op), record.op,
                  record.implementation};
    found.emplace(key, std::move(forecast));
  }
  std::vector<Forecast> out;
  for (auto& [key, forecast] : found) out.push_back(std::move(forecast));
  return out;
}

}  // namespace indexpool::reports
