// Errors of a score by kernel and part, by regime, and of all.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "indexpool/model/latency/spread.hpp"

namespace indexpool {
namespace {

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

ErrorSummary summary(std::string kernel, std::string part, std::string regime,
                     const std::vector<ScoredRow>& rows,
                     const std::function<bool(const ScoredRow&)>& belongs) {
  ErrorSummary out{std::move(kernel), std::move(part), std::move(regime)};
  std::vector<double> errors, signs, fitted;
  std::int64_t inside = 0;
  for (const ScoredRow& row : rows) {
    if (!belongs(row)) continue;
    if (!row.held_out) {
      fitted.push_back(std::abs(row.error()));
      continue;
    }
    errors.push_back(std::abs(row.error()));
    signs.push_back(row.error());
    inside += row.inside() ? 1 : 0;
  }
  out.fitted = static_cast<std::int64_t>(fitted.size());
  out.held_out = static_cast<std::int64_t>(errors.size());
  out.mean = mean(errors);
  out.median = median(errors);
  out.bias = median(signs);
  out.fitted_mean = mean(fitted);
  std::sort(errors.begin(), errors.end());
  if (errors.empty()) return out;
  out.p95 = upper_quantile(errors, 0.95);
  out.coverage = static_cast<double>(inside) / static_cast<double>(errors.size());
  return out;
}

}  // namespace

std::vector<ErrorSummary> summarise(const std::vector<ScoredRow>& rows) {
  const auto regime = [](const ScoredRow& row) {
    return std::string(to_string(row.predicted.parts.bound_by()));
  };
  std::map<std::pair<std::string, std::string>, bool> parts;
  std::map<std::string, bool> regimes;
  for (const ScoredRow& row : rows) {
    parts[{row.row->kernel, row.row->part}] = true;
    regimes[regime(row)] = true;
  }
  std::vector<ErrorSummary> out;
  for (const auto& each : parts) {
    const std::pair<std::string, std::string>& key = each.first;
    out.push_back(summary(key.first, key.second.empty() ? "all" : key.second, "all", rows,
                          [&key](const ScoredRow& row) {
                            return row.row->kernel == key.first && row.row->part == key.second;
                          }));
  }
  for (const auto& each : regimes) {
    const std::string& name = each.first;
    out.push_back(summary("all", "all", name, rows,
                          [&](const ScoredRow& row) { return regime(row) == name; }));
  }
  std::map<std::string, bool> part_names;
  for (const ScoredRow& row : rows) part_names[row.row->part] = true;
  for (const auto& each : part_names) {
    const std::string& name = each.first;
    if (part_names.size() < 2) break;
    out.push_back(summary("all", name, "all", rows,
                          [&name](const ScoredRow& row) { return row.row->part == name; }));
  }
  out.push_back(summary("all", "all", "all", rows, [](const ScoredRow&) { return true; }));
  return out;
}

}  // namespace indexpool
