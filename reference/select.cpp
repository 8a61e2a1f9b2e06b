// Which pools a query may see, which it selects, and which tokens that means.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// A pool is visible when its last token is: kpool p + kpool - 1 <= position.
std::int64_t visible_pools(std::int64_t position, std::int64_t index_kpool) {
  return (position + 1) / index_kpool;
}

std::vector<std::int64_t> select(std::span<const double> scores, std::int64_t k) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) order.push_back(static_cast<std::int64_t>(i));
  }
  const auto score = [&](std::int64_t i) { return scores[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, [&](auto a, auto b) { return score(a) > score(b); });
  const auto kept =
      std::min<std::size_t>(order.size(), static_cast<std::size_t>(std::max<std::int64_t>(k, 0)));
  order.resize(kept);
  std::ranges::sort(order);
  return order;
}

std::vector<std::int32_t> expand(std::span<const std::int64_t> pools, std::int64_t position,
                                 std::int64_t first_key, const IndexerConfig& config) {
  std::vector<std::int32_t> row;
  const auto append = [&](std::int64_t token) {
    row.push_back(static_cast<std::int32_t>(first_key + token));
  };
  for (const std::int64_t pool : pools) {
    for (std::int64_t j = 0; j < config.index_kpool; ++j) append(pool * config.index_kpool + j);
  }
  if (config.index_kpool_always_select_tail) {
    const std::int64_t pooled = visible_pools(position, config.index_kpool) * config.index_kpool;
    for (std::int64_t token = pooled; token <= position; ++token) append(token);
  }
  const auto width = static_cast<std::size_t>(config.selection_width());
  if (row.size() > width) {
    throw ConfigError(fmt::format("{} tokens selected for position {}, a row holds {}", row.size(),
                                  position, width));
  }
  row.resize(width, -1);
  return row;
}

}  // namespace indexpool::reference
