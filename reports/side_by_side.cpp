// The side-by-side table: one row per record, one column per row of the list below.
#include "indexpool/reports/side_by_side.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

// Long names are cut for people; JSON and CSV keep them.
constexpr std::size_t name_limit = 42;
Cell shortened_cell(const std::string& name) { return {shortened(name, name_limit), name}; }

Cell bytes_cell(const std::optional<Traffic>& traffic) {
  if (!traffic) return {};
  const std::int64_t bytes = traffic->global_load.value + traffic->global_store.value;
  return {format_bytes(static_cast<double>(bytes)), bytes};
}

Cell utilisation_cell(const Record& record) {
  const auto& checks = record.verdict.checks;
  const bool compared = std::ranges::any_of(checks, [](const Check& c) { return c.compared > 0; });
  if (!compared) return {};
  return {format_utilisation(record.verdict.worst_utilisation), record.verdict.worst_utilisation};
}

Cell decidable_cell(const Record& record) {
  const Verdict& verdict = record.verdict;
  if (!selects(record)) return {};
  return {fmt::format("{} of {}", format_count(verdict.decidable_rows), format_count(verdict.rows)),
          verdict.decidable_rows};
}

Cell predicted_cell(const Record& record) {
  if (!record.prediction) return {};
  const Prediction& prediction = *record.prediction;
  return {fmt::format("{} ({})", format_seconds(prediction.time.value),
                      format_interval(prediction.low, prediction.high)),
          prediction.time.value};
}

template <class Member>
Cell prediction_cell(const Record& record, const Member& member) {
  return record.prediction ? Cell(member(*record.prediction)) : Cell();
}

Cell measured_cell(const Record& record) {
  if (!record.measurement) return {};
  return {format_seconds(record.measurement->median.value), record.measurement->median.value};
}

enum class Shown { always, if_several, if_any, machines };
struct SideColumn {
  Column column;
  Cell (*cell)(const Record&);
  Shown shown = Shown::always;  // in tables; JSON and CSV have every column
};

const std::vector<SideColumn>& side_columns() {
  static const std::vector<SideColumn> columns = {
      {{"case", "case"},
       [](const Record& r) { return shortened_cell(r.case_name); },
       Shown::if_several},
      {{"op", "operation"}, [](const Record& r) { return Cell(r.op); }},
      {{"reference", "reference"}, [](const Record& r) { return shortened_cell(r.reference); }},
      {{"kernel", "kernel"}, [](const Record& r) { return Cell(r.implementation); }},
      {{"executor", "runs on"}, [](const Record& r) { return Cell(r.environment.target); }},
      {{"status", "verdict"}, [](const Record& r) { return status_cell(r.verdict.status); }},
      {{"worst_error_over_bound", "error/bound", true}, utilisation_cell},
      {{"decidable_rows", "decidable rows", true}, decidable_cell, Shown::if_any},
      {{"rows", "rows", true},
       [](const Record& r) { return Cell(format_count(r.verdict.rows), r.verdict.rows); },
       Shown::machines},
      {{"counted_bytes", "counted", true},
       [](const Record& r) { return bytes_cell(r.counted); },
       Shown::if_any},
      {{"measured_time_s", "measured", true}, measured_cell, Shown::if_any},
      {{"predicted_time_s", "predicted", true}, predicted_cell, Shown::if_any},
      {{"predicted_low_s", "low", true},
       [](const Record& r) {
         return r.prediction
                    ? Cell(format_seconds(r.prediction->low.value), r.prediction->low.value)
                    : Cell();
       },
       Shown::machines},
      {{"predicted_high_s", "high", true},
       [](const Record& r) {
         return r.prediction
                    ? Cell(format_seconds(r.prediction->high.value), r.prediction->high.value)
                    : Cell();
       },
       Shown::machines},
      {{"limited_by", "limited by"},
       [](const Record& r) {
         return prediction_cell(r, [](const Prediction& p) { return p.bound_by; });
       },
       Shown::if_any},
      {{"predicted_device", "device"},
       [](const Record& r) {
         return prediction_cell(r, [](const Prediction& p) { return p.device; });
       },
       Shown::machines},
      {{"reason", "reason"},
       [](const Record& r) { return Cell(r.verdict.reason); },
       Shown::machines},
      {{"repeat", "repeat"}, [](const Record& r) { return Cell(r.repeat); }, Shown::machines},
  };
  return columns;
}

bool is_shown(const SideColumn& column, const std::vector<Record>& records, bool several_cases) {
  switch (column.shown) {
    case Shown::always:
      return true;
    case Shown::if_several:
      return several_cases;
    case Shown::if_any:
      return std::any_of(records.begin(), records.end(),
                         [&](const Record& r) { return !column.cell(r).text.empty(); });
    case Shown::machines:
      break;
  }
  return false;
}

}  // namespace

Table side_by_side_table(const std::vector<Record>& records, bool every_column) {
  std::set<std::string> cases;
  for (const Record& record : records) cases.insert(record.case_name);
  Table table;
  std::vector<const SideColumn*> chosen;
  for (const SideColumn& column : side_columns()) {
    if (!every_column && !is_shown(column, records, cases.size() > 1)) continue;
    chosen.push_back(&column);
    table.columns.push_back(column.column);
  }
  for (const Record& record : records) {
    std::vector<Cell> row;
    for (const SideColumn* column : chosen) row.push_back(column->cell(record));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string side_by_side(const std::vector<Record>& records, Format format, bool colour) {
  const bool for_people = format == Format::table || format == Format::md;
  if (for_people && records.size() > most_rows_for_people) {
    return render(comparison_table(records), format, colour);
  }
  return render(side_by_side_table(records, !for_people), format, colour);
}

std::string side_by_side(const std::vector<Record>& records, Format format) {
  return side_by_side(records, format, false);
}

}  // namespace indexpool::reports
