// Is a selection right? Exactly, on the logits the top-k was given; and certainly, on enclosures of
// the logits as they should have been.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

// One row's enclosures, over its visible pools.
struct RowScores {
  std::span<const double> value, low, high;
};

// Marks the members of a set of pools.
std::vector<char> membership(const std::vector<std::int64_t>& pools, std::size_t visible) {
  std::vector<char> in(visible, 0);
  for (const std::int64_t pool : pools) in[static_cast<std::size_t>(pool)] = 1;
  return in;
}

// The least certain member and the most promising outsider: least upper end inside, largest lower
// end outside.
struct Edge {
  std::size_t member = 0, outsider = 0;
  double inside = std::numeric_limits<double>::infinity();
  double outside = -std::numeric_limits<double>::infinity();
};
Edge edge_of(const std::vector<char>& in, std::span<const double> of_members,
             std::span<const double> of_outsiders) {
  Edge edge;
  for (std::size_t p = 0; p < in.size(); ++p) {
    if (in[p] != 0 && of_members[p] < edge.inside) edge.inside = of_members[p], edge.member = p;
    if (in[p] == 0 && of_outsiders[p] > edge.outside) {
      edge.outside = of_outsiders[p], edge.outsider = p;
    }
  }
  return edge;
}

// Whether the set that the reference selects is the only right one: every member certainly beats
// every outsider, or is its equal for certain (both enclosures the same point, or the same stored
// bytes) and comes first.
bool decidable(const RowScores& scores, std::span<const std::vector<std::byte>> raw,
               std::int64_t k) {
  const std::size_t visible = scores.value.size();
  const std::vector<char> in = membership(reference::select(scores.value, k), visible);
  const Edge edge = edge_of(in, scores.low, scores.high);
  if (edge.inside > edge.outside) return true;
  std::vector<std::size_t> members, outsiders;
  for (std::size_t p = 0; p < visible; ++p) {
    if (in[p] != 0 && scores.low[p] <= edge.outside) members.push_back(p);
    if (in[p] == 0 && scores.high[p] >= edge.inside) outsiders.push_back(p);
  }
  const auto is_point = [&](std::size_t p) { return scores.low[p] == scores.high[p]; };
  if (std::ranges::all_of(members, is_point) && std::ranges::all_of(outsiders, is_point)) {
    // Points that touch are equal.
    return members.empty() || outsiders.empty() || members.back() < outsiders.front();
  }
  for (const std::size_t i : members) {
    for (const std::size_t j : outsiders) {
      if (scores.low[i] > scores.high[j]) continue;
      if (i > j || raw[i] != raw[j]) return false;
    }
  }
  return true;
}

RowScores row_scores(const reference::Bounded& bounds, std::int64_t row, std::int64_t visible) {
  const auto first = static_cast<std::size_t>(row * bounds.shape[1]);
  const auto count = static_cast<std::size_t>(visible);
  return {std::span(bounds.value).subspan(first, count),
          std::span(bounds.low).subspan(first, count),
          std::span(bounds.high).subspan(first, count)};
}

void judge_coverage(std::int64_t contested, std::int64_t contested_decidable, bool about_ties,
                    Tally& tally) {
  constexpr double enough = 0.9;
  const double share =
      contested == 0 ? 1
                     : static_cast<double>(contested_decidable) / static_cast<double>(contested);
  if (share >= enough) return;
  const std::string text = fmt::format("{} of {} rows that leave pools out are decidable",
                                       contested_decidable, contested);
  if (about_ties) {
    tally.note(text + ", as this fill wants");
  } else {
    tally.distrust(text);
  }
}

}  // namespace

Check check_tie_rule(const IndexerInputs& inputs, std::span<const float> logits,
                     std::int64_t stride, std::span<const std::int32_t> selection) {
  Tally tally("tie_rule");
  const auto width = static_cast<std::size_t>(inputs.config.selection_width());
  const std::int64_t kpool = inputs.config.index_kpool;
  std::size_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const std::int64_t visible = reference::visible_pools(query.position, kpool);
    const auto scores =
        logits.subspan(row * static_cast<std::size_t>(stride), static_cast<std::size_t>(visible));
    const std::vector<double> values(scores.begin(), scores.end());
    const auto pools = reference::select(values, inputs.config.topk_pools());
    auto expected = reference::expand(pools, query.position, query.first_key, inputs.config);
    auto found = std::vector<std::int32_t>(
        selection.begin() + static_cast<std::ptrdiff_t>(row * width),
        selection.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    ++row;
    std::ranges::sort(expected);
    std::ranges::sort(found);
    const auto differs = std::mismatch(found.begin(), found.end(), expected.begin());
    const auto token = [&](std::int32_t entry) {
      if (entry == -1) return std::string("-1");
      return fmt::format("token {} of pool {}", entry - query.first_key,
                         (entry - query.first_key) / kpool);
    };
    tally.compare(differs.first == found.end(), [&] {
      return fmt::format(
          "sequence {}, token {}: {} of {} visible pools; {} selected where the rule says {}",
          query.request, query.position, pools.size(), visible, token(*differs.first),
          token(*differs.second));
    });
  }
  return std::move(tally).finish();
}

Certificate check_selection(const IndexerInputs& inputs, const LogitBounds& bounds,
                            const StoredPools& pools, std::span<const std::int32_t> selection,
                            bool about_ties, std::span<const std::int64_t> nan_pools) {
  Certificate certificate;
  Tally tally("selection");
  const auto width = static_cast<std::size_t>(inputs.config.selection_width());
  const std::vector<std::int64_t> first_pool = first_pools(inputs);
  const std::int64_t k = inputs.config.topk_pools();
  std::int64_t contested = 0, contested_decidable = 0;
  std::size_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    const ParsedRow parsed =
        parse_selection(selection.subspan(row * width, width), query.position, query.first_key,
                        inputs.config, nan_pools.empty() ? 0 : nan_pools[row]);
    ++row;
    ++certificate.rows;
    const auto where = [&] {
      return fmt::format("sequence {}, token {}", query.request, query.position);
    };
    if (!parsed.fault.empty()) {
      tally.compare(false, [&] { return where() + ": " + parsed.fault; });
      continue;
    }
    if (visible <= k) {  // nothing to choose
      tally.compare(true, where);
      ++certificate.decidable_rows;
      continue;
    }
    const auto s = static_cast<std::size_t>(query.request);
    const RowScores scores = row_scores(bounds.sequences[s], query.position, visible);
    const Edge edge =
        edge_of(membership(parsed.pools, scores.value.size()), scores.high, scores.low);
    tally.compare(edge.inside >= edge.outside, [&] {
      return fmt::format("{}: pool {} (at most {:.9g}) selected, pool {} (at least {:.9g}) not",
                         where(), edge.member, edge.inside, edge.outsider, edge.outside);
    });
    ++contested;
    const auto raw = std::span(pools.raw).subspan(static_cast<std::size_t>(first_pool[s]),
                                                  static_cast<std::size_t>(visible));
    if (decidable(scores, raw, k)) ++contested_decidable;
  }
  certificate.decidable_rows += contested_decidable;
  judge_coverage(contested, contested_decidable, about_ties, tally);
  certificate.check = std::move(tally).finish();
  return certificate;
}

}  // namespace indexpool::verify
