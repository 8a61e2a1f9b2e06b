#include "indexpool/reports/cli/score_page_of.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/reports/cli/score_tables.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::ScorePage;

constexpr std::size_t most_worst = 20;

std::string error_text(double error) {
  return fmt::format("{}{}", error < 0 ? "−" : "+", reports::format_percent(std::abs(error)));
}

std::string row_text(const ScoredRow& row) {
  return fmt::format("{}, {}: measured {}, predicted {} ({}, interval {}), line {}, {}",
                     row.row->kernel, shape_text(row.row->shape),
                     reports::format_seconds(row.row->time.value),
                     reports::format_seconds(row.predicted.time.value), error_text(row.error()),
                     reports::format_interval(row.predicted.low, row.predicted.high), row.row->line,
                     row.held_out ? "held out" : "a fit saw it");
}

std::vector<reports::ScatterPoint> points_of(const Score& score) {
  std::vector<reports::ScatterPoint> points;
  for (const ScoredRow& row : score.rows) {
    points.push_back({row.row->time.value, row.predicted.time.value,
                      std::string(to_string(row.predicted.parts.bound_by())), row.held_out,
                      row_text(row)});
  }
  return points;
}

std::vector<ScorePage::Fact> facts_of(const Score& score) {
  const ErrorSummary& all = score.summaries.back();
  return {{reports::format_percent(all.mean), "mean error"},
          {reports::format_percent(all.median), "median"},
          {reports::format_percent(all.p95), "95 of 100 rows are missed by less"},
          {reports::format_percent(all.coverage), "lie inside their 90 % interval"},
          {reports::format_count(all.held_out), "rows held out"},
          {reports::format_count(all.fitted), "rows a fit could see"}};
}

std::vector<std::string> provenance_of(const Score& score) {
  const TimingTable& table = score.table;
  std::vector<std::string> out = {fmt::format(
      "{}: {} rows, read as {}{}; predicted on {}.",
      table.file.substr(table.file.find_last_of('/') + 1),
      reports::format_count(static_cast<std::int64_t>(table.rows.size())), table.adapter,
      table.measured_on.empty() ? "" : ", measured on " + table.measured_on, score.device)};
  if (table.skipped > 0) {
    out.push_back(fmt::format("{} more rows are left out: {}.", table.skipped, table.skipped_why));
  }
  if (score.constants.implementations.empty()) {
    out.emplace_back("Nothing is fitted to these times: every row is held out.");
    return out;
  }
  out.push_back(fmt::format("Constants {} ({}): {}. {}.", score.constants.name,
                            score.fitted_here ? "fitted now" : "given", score.constants.provenance,
                            score.constants.source));
  out.emplace_back(
      "Rows of one shape are held out together, by a hash of shape and seed. The interval is that "
      "of rows which a fit to other rows of the table did not see.");
  return out;
}

// Held-out rows, those missed by most first.
reports::Table worst_rows(const Score& score) {
  std::vector<const ScoredRow*> rows;
  for (const ScoredRow& row : score.rows) {
    if (row.held_out) rows.push_back(&row);
  }
  const auto missed = [](const ScoredRow* row) {
    return std::abs(std::log(row->predicted.time / row->row->time));
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ScoredRow* a, const ScoredRow* b) { return missed(a) > missed(b); });
  rows.resize(std::min(rows.size(), most_worst));
  reports::Table table{{{"line", "line", true},
                        {"kernel", "kernel"},
                        {"shape", "shape"},
                        {"regime", "bound by"},
                        {"measured_s", "measured", true},
                        {"predicted_s", "predicted", true},
                        {"error", "error", true},
                        {"interval", "90 % interval", true}},
                       {}};
  for (const ScoredRow* row : rows) {
    const double measured = row->row->time.value, predicted = row->predicted.time.value;
    table.rows.push_back({{fmt::format("{}", row->row->line), row->row->line},
                          {row->row->kernel},
                          {shape_text(row->row->shape)},
                          {std::string(to_string(row->predicted.parts.bound_by()))},
                          {reports::format_seconds(measured), measured},
                          {reports::format_seconds(predicted), predicted},
                          {error_text(row->error()), row->error()},
                          {reports::format_interval(row->predicted.low, row->predicted.high) +
                           (row->inside() ? "" : ", outside")}});
  }
  return table;
}

}  // namespace

ScorePage score_page_of(const Score& score, const std::string& command) {
  ScorePage page;
  page.title =
      fmt::format("Predicted against measured: {} on {}", score.table.adapter, score.device);
  page.command = command;
  page.facts = facts_of(score);
  page.provenance = provenance_of(score);
  page.points = points_of(score);
  page.errors = error_table(score);
  page.worst = worst_rows(score);
  page.constants = constant_table(score);
  return page;
}

}  // namespace indexpool::cli
