#include "indexpool/reports/cli/recall_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/cli/names.hpp"

namespace indexpool::cli {
namespace {

using reference::training::Interval;
using reports::Cell;
using verify::recall::Form;
using verify::recall::Row;

Cell count(std::int64_t value) { return {fmt::format("{}", value), value}; }
Cell number(double value) { return {fmt::format("{:.3f}", value), value}; }
Cell with_interval(const Interval& of) {
  return {fmt::format("{:.3f} ({:.3f} to {:.3f})", of.value, of.low, of.high), of.value};
}
// A difference of nothing says that the two select the same.
Cell over_mean(const Interval& of) {
  if (of.value == 0 && of.low == 0 && of.high == 0) return {"0", 0.0};
  return {fmt::format("{:+.3f} ({:+.3f} to {:+.3f})", of.value, of.low, of.high), of.value};
}
std::string ratio_text(const Row& row) { return fmt::format("{}:1", row.ratio); }

// Places among the rows of the same ratio that a pooled indexer could have; equal values share one.
template <class Value>
Cell place(const std::vector<Row>& rows, const Row& of, const Value& value) {
  if (of.form == Form::unpooled) return {};
  std::int64_t better = 0;
  for (const Row& other : rows)
    if (other.ratio == of.ratio && other.form != Form::unpooled && value(other) > value(of))
      ++better;
  return count(better + 1);
}
Cell recall_place(const std::vector<Row>& rows, const Row& of) {
  return place(rows, of, [](const Row& row) { return row.recall.value; });
}
Cell mass_place(const std::vector<Row>& rows, const Row& of) {
  return place(rows, of, [](const Row& row) { return row.mass.value; });
}

Check in_range(const Row& row) {
  Check check;
  check.name = "range";
  for (const auto& [what, of] :
       {std::pair("recall", row.recall), std::pair("F1", row.f1), std::pair("mass", row.mass)}) {
    ++check.compared;
    constexpr double slack = 1e-12;  // sums of shares may end a rounding beyond
    const bool holds = 0 <= of.low && of.low <= of.value + slack && of.value <= of.high + slack &&
                       of.high <= 1 + slack;
    if (holds) continue;
    if (++check.violations == 1)
      check.reason = fmt::format("{}: found {} ({} to {}), expected low <= value <= high in [0, 1]",
                                 what, of.value, of.low, of.high);
  }
  check.status = check.violations > 0 ? Status::failed : Status::passed;
  return check;
}

// Where the k-th and the next score are equal, recall depends on the order of tokens.
Check decidable(const Row& row) {
  Check check;
  check.name = "decidable";
  check.compared = row.queries;
  if (row.ties < row.queries) return check;
  check.status = Status::untrusted;
  check.reason = fmt::format("the {} best of every query are decided by ties alone", row.k);
  return check;
}

Check never_rises(const Row& row) {
  Check check;
  check.name = "objective";
  check.compared = 1;
  if (row.loss_after <= row.loss_before) return check;
  check.status = Status::failed;
  check.violations = 1;
  check.reason =
      fmt::format("training raised it from {:.6g} to {:.6g}", row.loss_before, row.loss_after);
  return check;
}

Verdict verdict_of(const Row& row) {
  Verdict verdict;
  verdict.checks = {in_range(row), decidable(row)};
  if (row.form == Form::trained) verdict.checks.push_back(never_rises(row));
  verdict.status = Status::passed;
  for (const Check& check : verdict.checks) {
    verdict.status = worst(verdict.status, check.status);
    if (verdict.reason.empty()) verdict.reason = check.reason;
  }
  verdict.rows = row.queries;
  verdict.decidable_rows = row.queries - row.ties;
  return verdict;
}

void put(Record& record, const std::string& name, const Interval& of) {
  record.values[name] = of.value;
  record.values[name + "_low"] = of.low;
  record.values[name + "_high"] = of.high;
}

Record record_of(const RecallResult& result, const Row& row, std::uint64_t seed) {
  Record record;
  record.case_name = fmt::format("{}, {}", result.data, ratio_text(row));
  record.op = "recall";
  record.implementation = row.policy;
  if (row.form == Form::trained || row.form == Form::untrained)
    record.implementation += ", " + std::string(to_string(row.form));
  record.reference = "unpooled scores";
  record.environment.target = "reference";
  record.environment.version = INDEXPOOL_VERSION;
  record.seed = seed;
  record.repeat = result.command;
  record.verdict = verdict_of(row);
  put(record, "recall", row.recall);
  put(record, "f1", row.f1);
  put(record, "mass", row.mass);
  put(record, "recall_over_mean", row.over_mean);
  record.values["oracle_mass"] = row.oracle_mass;
  record.values["ratio"] = static_cast<double>(row.ratio);
  record.values["recall_k"] = static_cast<double>(row.k);
  record.values["selected_tokens"] = static_cast<double>(row.selected);
  if (row.form == Form::trained) {
    record.values["objective_first_nats"] = row.loss_before;
    record.values["objective_last_nats"] = row.loss_after;
  }
  return record;
}

}  // namespace

reports::Table ranking_table(const std::vector<RecallResult>& results) {
  reports::Table table;
  table.columns = {{"data", "data"},
                   {"ratio", "ratio", true},
                   {"rank", "rank", true},
                   {"policy", "policy"},
                   {"how", "how"},
                   {"recall", "recall (95 %)", true},
                   {"over_mean", "over mean (95 %)", true},
                   {"f1", "F1", true},
                   {"mass", "attention kept (95 %)", true},
                   {"oracle_mass", "of the best", true},
                   {"mass_rank", "rank", true}};
  for (const RecallResult& result : results) {
    for (const Row& row : result.rows) {
      table.rows.push_back({result.data, ratio_text(row), recall_place(result.rows, row),
                            row.policy, std::string(to_string(row.form)), with_interval(row.recall),
                            over_mean(row.over_mean), number(row.f1.value), with_interval(row.mass),
                            number(row.oracle_mass), mass_place(result.rows, row)});
    }
  }
  return table;
}

reports::Table recall_table(const std::vector<RecallResult>& results) {
  reports::Table table;
  for (const char* key : {"data", "ratio", "rank", "policy", "how", "k", "selected_tokens"})
    table.columns.push_back({key, key});
  for (const std::string name : {"recall", "f1", "mass", "recall_over_mean"})
    for (const char* end : {"", "_low", "_high"})
      table.columns.push_back({name + end, name + end, true});
  for (const char* key : {"oracle_mass", "mass_rank", "queries", "ties"})
    table.columns.push_back({key, key, true});
  for (const RecallResult& result : results) {
    for (const Row& row : result.rows) {
      std::vector<Cell> cells = {result.data,
                                 count(row.ratio),
                                 recall_place(result.rows, row),
                                 row.policy,
                                 std::string(to_string(row.form)),
                                 count(row.k),
                                 count(row.selected)};
      for (const Interval* of : {&row.recall, &row.f1, &row.mass, &row.over_mean})
        for (const double value : {of->value, of->low, of->high})
          cells.push_back({fmt::format("{:.6f}", value), value});
      cells.push_back({fmt::format("{:.6f}", row.oracle_mass), row.oracle_mass});
      cells.push_back(mass_place(result.rows, row));
      cells.push_back(count(row.queries));
      cells.push_back(count(row.ties));
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

std::string leaders_text(const std::vector<RecallResult>& results) {
  const auto name = [](const Row& row) {
    return row.form == Form::fixed ? row.policy
                                   : row.policy + " " + std::string(to_string(row.form));
  };
  std::string text;
  for (const RecallResult& result : results) {
    std::int64_t ratio = 0;
    for (const Row& row : result.rows) {
      if (row.ratio == ratio || row.form == Form::unpooled) continue;
      ratio = row.ratio;
      const Row* keeper = &row;
      for (const Row& other : result.rows)
        if (other.ratio == ratio && other.form != Form::unpooled &&
            other.mass.value > keeper->mass.value)
          keeper = &other;
      text += fmt::format(
          "{}, {}: most of the {} best in {} tokens: {} ({:.3f}); most attention: {} ({:.3f} of "
          "{:.3f}).\n",
          result.data, ratio_text(row), row.k, row.selected, name(row), row.recall.value,
          name(*keeper), keeper->mass.value, row.oracle_mass);
    }
  }
  return text;
}

std::vector<Record> recall_records(const std::vector<RecallResult>& results, std::uint64_t seed) {
  std::vector<Record> records;
  for (const RecallResult& result : results)
    for (const Row& row : result.rows) records.push_back(record_of(result, row, seed));
  return records;
}

}  // namespace indexpool::cli
