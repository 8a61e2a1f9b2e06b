// A row of the selection as a data structure: what it says, and whether it may say it.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

// Tokens of the row by pool: how many of each pool's tokens are there. Empty text: no fault.
std::string count_tokens(std::span<const std::int32_t> row, std::int64_t position,
                         std::int64_t first_key, std::int64_t kpool,
                         std::map<std::int64_t, std::int64_t>& tokens_of) {
  std::vector<std::int64_t> tokens;
  for (const std::int32_t entry : row) {
    if (entry == -1) continue;
    const std::int64_t token = entry - first_key;
    if (token < 0) return fmt::format("entry {} lies before the first token {}", entry, first_key);
    if (token > position)
      return fmt::format("token {} of pool {} lies after the query at {}", token, token / kpool,
                         position);
    tokens.push_back(token);
  }
  std::ranges::sort(tokens);
  const auto twice = std::ranges::adjacent_find(tokens);
  if (twice != tokens.end()) {
    return fmt::format("token {} of pool {} is selected twice", *twice, *twice / kpool);
  }
  for (const std::int64_t token : tokens) ++tokens_of[token / kpool];
  return {};
}

}  // namespace

ParsedRow parse_selection(std::span<const std::int32_t> row, std::int64_t position,
                          std::int64_t first_key, const IndexerConfig& config,
                          std::int64_t nan_pools) {
  ParsedRow parsed;
  const std::int64_t kpool = config.index_kpool;
  const std::int64_t visible = (position + 1) / kpool, tail = (position + 1) % kpool;
  std::map<std::int64_t, std::int64_t> tokens_of;
  parsed.fault = count_tokens(row, position, first_key, kpool, tokens_of);
  if (!parsed.fault.empty()) return parsed;
  for (const auto& [pool, tokens] : tokens_of) {
    if (pool == visible) continue;
    if (tokens != kpool) {
      parsed.fault = fmt::format("pool {}: {} of its {} tokens selected", pool, tokens, kpool);
      return parsed;
    }
    parsed.pools.push_back(pool);
  }
  const std::int64_t forced = config.index_kpool_always_select_tail ? tail : 0;
  const std::int64_t found = tokens_of.contains(visible) ? tokens_of.at(visible) : 0;
  if (found != forced) {
    parsed.fault = fmt::format("{} tokens of the tail (pool {}) selected, expected {}", found,
                               visible, forced);
    return parsed;
  }
  const std::int64_t wanted = std::min(config.topk_pools(), visible - nan_pools);
  if (static_cast<std::int64_t>(parsed.pools.size()) != wanted) {
    std::int64_t out = 0;
    while (std::ranges::binary_search(parsed.pools, out)) ++out;
    parsed.fault = fmt::format("{} pools selected, expected {}; pool {} is the first left out",
                               parsed.pools.size(), wanted, out);
  }
  return parsed;
}

std::vector<std::int64_t> nan_pools(const IndexerInputs& inputs, std::span<const float> logits,
                                    std::int64_t stride) {
  std::vector<std::int64_t> result;
  for (const auto& query : query_rows(inputs)) {
    const std::size_t first = result.size() * static_cast<std::size_t>(stride);
    const auto visible = static_cast<std::size_t>((query.position + 1) / inputs.config.index_kpool);
    result.push_back(std::ranges::count_if(logits.subspan(first, visible),
                                           [](float x) { return std::isnan(x); }));
  }
  return result;
}

Check check_structure(const IndexerInputs& inputs, std::span<const std::int32_t> selection,
                      std::span<const std::int64_t> nan_pools) {
  Tally tally("structure");
  const auto width = static_cast<std::size_t>(inputs.config.selection_width());
  const std::int64_t kpool = inputs.config.index_kpool;
  std::size_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto entries = selection.subspan(row * width, width);
    const ParsedRow parsed = parse_selection(entries, query.position, query.first_key,
                                             inputs.config, nan_pools.empty() ? 0 : nan_pools[row]);
    const auto where = [&] {
      return fmt::format("sequence {}, token {}", query.request, query.position);
    };
    tally.compare(parsed.fault.empty(), [&] { return where() + ": " + parsed.fault; });
    ++row;
    if (!parsed.fault.empty()) continue;
    // Pools ascending from column 0; the tail from column index_topk; -1 elsewhere.
    std::vector<std::int32_t> expected(width, -1);
    std::size_t column = 0;
    for (const std::int64_t pool : parsed.pools) {
      for (std::int64_t j = 0; j < kpool; ++j) {
        expected[column++] = static_cast<std::int32_t>(query.first_key + pool * kpool + j);
      }
    }
    if (inputs.config.index_kpool_always_select_tail) {
      column = static_cast<std::size_t>(inputs.config.index_topk);
      for (std::int64_t t = (query.position + 1) / kpool * kpool; t <= query.position; ++t) {
        expected[column++] = static_cast<std::int32_t>(query.first_key + t);
      }
    }
    const auto differs = std::mismatch(entries.begin(), entries.end(), expected.begin());
    tally.compare(differs.first == entries.end(), [&] {
      return fmt::format("{}, column {}: {}, expected {}", where(), differs.first - entries.begin(),
                         *differs.first, *differs.second);
    });
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
