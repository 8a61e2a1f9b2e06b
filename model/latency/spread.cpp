#include "indexpool/model/latency/spread.hpp"

#include <algorithm>
#include <cmath>
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

}  // namespace indexpool
