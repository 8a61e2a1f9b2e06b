#include "indexpool/model/latency/spread.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr double outside = 0.1;     // of a 90 % interval
constexpr double confidence = 0.9;  // that an interval found from few families holds 90 %

struct Kind {
  std::vector<double> ratios;  // measured over predicted
  std::set<std::string> families;
};

double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// How many of n values to leave outside on each side, counted from 1: at 1 the extremes are the
// ends. The most for which what lies between holds 90 % of further values with that confidence,
// whatever the distribution (Wilks 1941): the share between two of n order statistics is
// distributed as Beta, so that P(Bin(n, outside) < both sides) <= 1 - confidence. 0 below 38
// values, whose extremes are not enough.
double outside_each_side(std::size_t n) {
  const auto count = static_cast<double>(n);
  double below = 0, both = 0;
  for (; both <= count; ++both) {
    below += std::exp(log_choose(count, both) + both * std::log(outside) +
                      (count - both) * std::log1p(-outside));
    if (below > 1 - confidence) break;
  }
  return std::floor(both / 2);
}

// Rows of one family are missed alike, so that families are counted, not rows.
Spread spread_of(const Kind& kind) {
  std::vector<double> ratios = kind.ratios, inverse;
  inverse.reserve(ratios.size());
  for (const double ratio : ratios) inverse.push_back(1 / ratio);
  std::sort(ratios.begin(), ratios.end());
  std::sort(inverse.begin(), inverse.end());
  const auto families = static_cast<double>(kind.families.size());
  const double each_side = std::max(outside_each_side(kind.families.size()), 1.0);
  const double share = 1 - each_side / (families + 1);
  return {std::min(1.0, 1 / upper_quantile(inverse, share)),
          std::max(1.0, upper_quantile(ratios, share)), static_cast<std::int64_t>(ratios.size())};
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
  out.p95 = upper_quantile(errors, 0.95);
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

std::map<std::string, Spread> spreads(std::span<const UnseenRow> rows) {
  std::map<std::string, Kind> kinds;
  for (const UnseenRow& row : rows) {
    for (const std::string& key : spread_keys(row.row->shape, row.bound_by)) {
      kinds[key].ratios.push_back(row.ratio);
      kinds[key].families.insert(row.row->family);
    }
  }
  std::map<std::string, Spread> out;
  for (const auto& [name, kind] : kinds) out[name] = spread_of(kind);
  for (auto& [name, spread] : out) {
    if (outside_each_side(kinds.at(name).families.size()) > 0) continue;
    spread.low = std::min(spread.low, out.at("all").low);
    spread.high = std::max(spread.high, out.at("all").high);
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
