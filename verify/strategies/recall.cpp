#include "indexpool/verify/strategies/recall.hpp"

#include <algorithm>
#include <numeric>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::verify::strategies {

double score_of(const Stream& stream, std::int64_t step, std::span<const double> vector) {
  double score = 0;
  for (std::int64_t h = 0; h < stream.heads; ++h) {
    const auto head = static_cast<std::size_t>(step * stream.heads + h);
    const double* query = stream.queries.data() + head * vector.size();
    double dot = 0;
    for (std::size_t c = 0; c < vector.size(); ++c) dot += query[c] * vector[c];
    score += stream.head_weights[head] * std::max(0.0, dot);
  }
  return score;
}

std::vector<std::int64_t> oracle_tokens(const Stream& stream, std::int64_t layer, std::int64_t step,
                                        std::int64_t tokens, std::int64_t k) {
  std::vector<double> scores;
  for (std::int64_t t = 0; t < tokens; ++t)
    scores.push_back(score_of(stream, step, stream.group(layer, t, 1)));
  return reference::select(scores, k);
}

std::vector<std::size_t> select_segments(std::span<const double> scores,
                                         std::span<const Segment> segments, std::int64_t budget) {
  std::vector<std::size_t> order(scores.size()), selected;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  for (const std::size_t each : order) {
    if (budget == 0) break;
    if (segments[each].count > budget) continue;
    budget -= segments[each].count;
    selected.push_back(each);
  }
  std::sort(selected.begin(), selected.end());
  return selected;
}

double share_kept(std::span<const std::int64_t> wanted, std::span<const Segment> selected,
                  std::int64_t tail_first) {
  std::int64_t kept = 0;
  for (const std::int64_t token : wanted) {
    const bool inside = std::any_of(selected.begin(), selected.end(), [&](const Segment& segment) {
      return token >= segment.first && token < segment.end();
    });
    kept += inside || token >= tail_first ? 1 : 0;
  }
  return wanted.empty() ? 1 : static_cast<double>(kept) / static_cast<double>(wanted.size());
}

}  // namespace indexpool::verify::strategies
