// Certified selection: min over the taken of the upper ends >= max over the rest of the lower ends
// is necessary and sufficient for some scores within the intervals to have that set as a top k.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "indexpool/reference/golden.hpp"

namespace indexpool::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The row's tokens as positions in the sequence, ascending; or a fault.
std::string tokens_of(std::span<const std::int32_t> row, std::int64_t position,
                      std::int64_t first_key, std::vector<std::int64_t>& tokens) {
  for (const std::int32_t entry : row) {
    if (entry == -1) continue;
    const std::int64_t token = entry - first_key;
    if (token < 0 || token > position) {
      return fmt::format("token {} is not among the {} visible ones from {} on", entry,
                         position + 1, first_key);
    }
    tokens.push_back(token);
  }
  std::ranges::sort(tokens);
  const auto twice = std::ranges::adjacent_find(tokens);
  if (twice == tokens.end()) return {};
  return fmt::format("token {} is listed twice", *twice + first_key);
}

// Splits off the tail and folds the rest into pools; or a fault.
std::string pools_of(std::span<const std::int64_t> tokens, std::int64_t position,
                     const IndexerConfig& config, std::vector<std::int64_t>& pools) {
  const std::int64_t kpool = config.index_kpool;
  const std::int64_t pooled = visible_pools(position, kpool) * kpool;
  const auto tail = std::ranges::lower_bound(tokens, pooled);
  const std::int64_t expected_tail =
      config.index_kpool_always_select_tail ? position + 1 - pooled : 0;
  if (tokens.end() - tail != expected_tail) {
    return fmt::format("{} tokens of the tail, expected {}", tokens.end() - tail, expected_tail);
  }
  // Distinct and ascending, so a complete pool is a run of kpool tokens that starts at its first.
  const auto history = tokens.first(static_cast<std::size_t>(tail - tokens.begin()));
  const auto width = static_cast<std::size_t>(kpool);
  for (std::size_t i = 0; i < history.size(); i += width) {
    const std::int64_t pool = history[i] / kpool;
    const bool whole = i + width <= history.size() && history[i] == pool * kpool &&
                       history[i + width - 1] == pool * kpool + kpool - 1;
    if (!whole) {
      return fmt::format("pool {} is not complete", pool);
    }
    pools.push_back(pool);
  }
  return {};
}

}  // namespace

std::string selection_fault(std::span<const std::int32_t> row, std::span<const double> low,
                            std::span<const double> high, std::int64_t position,
                            std::int64_t first_key, const IndexerConfig& config) {
  std::vector<std::int64_t> tokens, pools;
  if (auto fault = tokens_of(row, position, first_key, tokens); !fault.empty()) return fault;
  if (auto fault = pools_of(tokens, position, config, pools); !fault.empty()) return fault;
  const auto visible = static_cast<std::int64_t>(low.size());
  const std::int64_t expected = std::min(config.topk_pools(), visible);
  if (static_cast<std::int64_t>(pools.size()) != expected) {
    return fmt::format("{} pools selected of {} visible, expected {}", pools.size(), visible,
                       expected);
  }
  std::vector<bool> taken(low.size(), false);
  for (const auto pool : pools) taken[static_cast<std::size_t>(pool)] = true;
  double least = infinity, most = -infinity;
  std::size_t worst = 0, best = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (taken[i] && high[i] < least) least = high[worst = i];
    if (!taken[i] && low[i] > most) most = low[best = i];
  }
  if (least >= most) return {};
  return fmt::format("pool {} (at most {}) was taken, pool {} (at least {}) was not", worst, least,
                     best, most);
}

bool selection_decidable(std::span<const double> low, std::span<const double> high,
                         std::int64_t k) {
  if (static_cast<std::int64_t>(low.size()) <= k) return true;
  // The set of the k largest lower ends is the only one iff it beats every other upper end.
  std::vector<bool> taken(low.size(), false);
  for (const auto i : select(low, k)) taken[static_cast<std::size_t>(i)] = true;
  double least = infinity, most = -infinity;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (taken[i]) least = std::min(least, low[i]);
    if (!taken[i]) most = std::max(most, high[i]);
  }
  return least > most;
}

}  // namespace indexpool::reference
