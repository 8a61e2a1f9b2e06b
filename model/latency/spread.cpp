#include "indexpool/model/latency/spread.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr std::size_t least_of_kind = 20;
constexpr double each_tail = 0.05;  // of a 90 % interval

Spread spread_of(std::vector<double> ratios) {
  std::vector<double> inverse;
  inverse.reserve(ratios.size());
  for (const double ratio : ratios) inverse.push_back(1 / ratio);
  std::sort(ratios.begin(), ratios.end());
  std::sort(inverse.begin(), inverse.end());
  return {std::min(1.0, 1 / upper_quantile(inverse, 1 - each_tail)),
          std::max(1.0, upper_quantile(ratios, 1 - each_tail)),
          static_cast<std::int64_t>(ratios.size())};
}

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
  out.p95 = upper_quantile(errors, 1 - each_tail);
  out.coverage = static_cast<double>(inside) / static_cast<double>(errors.size());
  return out;
}

}  // namespace

double upper_quantile(const std::vector<double>& sorted, double share) {
  require(!sorted.empty(), "a quantile of nothing");
  const double rank = std::ceil(share * static_cast<double>(sorted.size() + 1));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

std::map<std::string, Spread> spreads(const Implementation& implementation, const KernelForm& form,
                                      const DeviceSpec& device,
                                      std::span<const TimedRow* const> rows) {
  std::map<std::string, std::vector<double>> ratios;
  for (const TimedRow* row : rows) {
    const KernelEstimate predicted = estimate(implementation, form, row->shape, device);
    const double ratio = row->time / predicted.time;
    for (const std::string& key : spread_keys(row->shape, predicted.parts.bound_by())) {
      ratios[key].push_back(ratio);
    }
  }
  std::map<std::string, Spread> out;
  for (auto& [name, values] : ratios) {
    if (name == "all" || values.size() >= least_of_kind) out[name] = spread_of(std::move(values));
  }
  return out;
}

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
