// Runs to rows, rows to records and back.
#include "indexpool/reports/utilisation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t most_octaves = 64;

// The value that `share` of all lie at or below: one that occurred.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::max(at, 0.0))];
}

// 0 for [1/2, 1) and above, 1 for [1/4, 1/2), ...
std::size_t octave(double utilisation) {
  const int exponent = std::clamp(-std::ilogb(utilisation) - 1, 0, 63);
  return static_cast<std::size_t>(exponent);
}

double value_of(const Record& record, const std::string& name) {
  const auto found = record.values.find(name);
  return found == record.values.end() ? 0 : found->second;
}
std::int64_t count_of(const Record& record, const std::string& name) {
  return std::llround(value_of(record, name));
}

bool is_campaign(const Record& record) { return record.values.contains("utilisation_runs"); }

UtilisationRow row_of(const Record& record) {
  UtilisationRow row;
  row.op = record.op;
  row.kernel = record.implementation;
  row.of = record.case_name;
  row.runs = count_of(record, "utilisation_runs");
  row.campaign = count_of(record, "utilisation_campaign");
  row.elements = count_of(record, "utilisation_elements");
  row.exact = count_of(record, "utilisation_exact");
  row.p10 = value_of(record, "utilisation_p10");
  row.median = value_of(record, "utilisation_median");
  row.p90 = value_of(record, "utilisation_p90");
  if (!record.verdict.checks.empty()) {
    row.check = record.verdict.checks.front().name;
    row.worst = record.verdict.checks.front().utilisation;
  }
  for (std::size_t k = 0; k < most_octaves; ++k) {
    row.octaves.push_back(count_of(record, fmt::format("utilisation_octave_{}", k)));
  }
  while (!row.octaves.empty() && row.octaves.back() == 0) row.octaves.pop_back();
  return row;
}

// Records that are runs, by operation, kernel and check.
std::vector<UtilisationRow> rows_of_runs(const std::vector<Record>& records) {
  using Key = std::tuple<int, std::string, std::string, std::string>;
  struct Samples {
    std::vector<double> worst;
    std::int64_t elements = 0;
    bool figure = false;
  };
  std::map<Key, Samples> groups;
  for (const Record& record : records) {
    if (is_campaign(record)) continue;
    for (const Check& check : record.verdict.checks) {
      if (check.compared == 0) continue;
      Samples& group =
          groups[{operation_rank(record.op), record.op, record.implementation, check.name}];
      group.worst.push_back(check.utilisation);
      group.elements += check.compared;
      group.figure = group.figure || check.utilisation > 0;
    }
  }
  std::vector<UtilisationRow> rows;
  for (auto& [key, group] : groups) {
    if (!group.figure) continue;
    UtilisationRow names;
    std::tie(std::ignore, names.op, names.kernel, names.check) = key;
    names.of = "all";
    names.elements = group.elements;
    rows.push_back(summarise(std::move(names), std::move(group.worst)));
  }
  return rows;
}

}  // namespace

UtilisationRow summarise(UtilisationRow row, std::vector<double> worst_of_runs) {
  std::sort(worst_of_runs.begin(), worst_of_runs.end());
  row.runs = static_cast<std::int64_t>(worst_of_runs.size());
  const auto first_error = std::upper_bound(worst_of_runs.begin(), worst_of_runs.end(), 0.0);
  row.exact = first_error - worst_of_runs.begin();
  worst_of_runs.erase(worst_of_runs.begin(), first_error);
  row.p10 = quantile(worst_of_runs, 0.1);
  row.median = quantile(worst_of_runs, 0.5);
  row.p90 = quantile(worst_of_runs, 0.9);
  row.worst = worst_of_runs.empty() ? 0 : worst_of_runs.back();
  row.octaves.clear();
  for (const double utilisation : worst_of_runs) {
    const std::size_t k = octave(utilisation);
    if (row.octaves.size() <= k) row.octaves.resize(k + 1);
    ++row.octaves[k];
  }
  return row;
}

Record utilisation_record(const UtilisationRow& row, const std::string& repeat) {
  Record record;
  record.case_name = row.of;
  record.op = row.op;
  record.implementation = row.kernel;
  record.reference = "reference, binary64";
  record.environment.target = "simt";
  record.repeat = repeat;
  record.verdict.status = Status::passed;
  record.verdict.worst_utilisation = row.worst;
  record.verdict.checks = {{row.check, Status::passed, "", row.worst, row.elements, 0}};
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  record.values = {{"utilisation_runs", count(row.runs)},
                   {"utilisation_campaign", count(row.campaign)},
                   {"utilisation_elements", count(row.elements)},
                   {"utilisation_exact", count(row.exact)},
                   {"utilisation_p10", row.p10},
                   {"utilisation_median", row.median},
                   {"utilisation_p90", row.p90}};
  for (std::size_t k = 0; k < row.octaves.size(); ++k) {
    if (row.octaves[k] == 0) continue;
    record.values[fmt::format("utilisation_octave_{}", k)] = count(row.octaves[k]);
  }
  return record;
}

std::vector<UtilisationRow> utilisation_rows(const std::vector<Record>& records) {
  std::vector<UtilisationRow> rows = rows_of_runs(records);
  for (const Record& record : records) {
    if (is_campaign(record)) rows.push_back(row_of(record));
  }
  const auto key = [](const UtilisationRow& row) {
    return std::make_tuple(row.of != "all", operation_rank(row.op), row.op, row.kernel, row.check,
                           row.of);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const UtilisationRow& a, const UtilisationRow& b) {
    return key(a) < key(b);
  });
  return rows;
}

bool loose(const UtilisationRow& row) {
  return row.campaign >= campaign_for_loose && row.worst > 0 && row.worst < loose_below;
}

}  // namespace indexpool::reports
