#include "indexpool/verify/recall/kept.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::verify::recall {
namespace {

using namespace reference::training;
using reference::training::Sequence;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// softmax(q . k / sqrt(D)) of one head, times `share`, added to a row.
void add_attention(const Geometry& g, const double* query, const Sequence& sequence, double share,
                   double* row) {
  std::vector<double> logits;
  for (std::int64_t t = 0; t < g.tokens; ++t)
    logits.push_back(dot(query, sequence.keys.data() + t * g.head_dim, g.head_dim) /
                     std::sqrt(static_cast<double>(g.head_dim)));
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (double& x : logits) total += x = std::exp(x - largest);
  for (std::size_t t = 0; t < logits.size(); ++t) row[t] += share * logits[t] / total;
}

}  // namespace

Unpooled unpooled(const DataSet& data, const Sequence& sequence, std::int64_t k) {
  Geometry g = data.geometry;
  g.index_kpool = 1;
  ObjectiveOptions options;
  options.relu = data.relu;
  Unpooled out;
  out.tokens = g.tokens;
  out.scores = prepare("mean", g, {sequence}, options).sequences[0].token_scores;
  out.attention.assign(out.scores.size(), 0);
  for (std::int64_t row = 0; row < g.queries * g.heads; ++row)
    add_attention(g, sequence.queries.data() + row * g.head_dim, sequence,
                  1 / static_cast<double>(g.heads),
                  out.attention.data() + row / g.heads * g.tokens);
  for (std::int64_t q = 0; q < g.queries; ++q) {
    const auto scores = std::span(out.scores).subspan(size(q * g.tokens), size(g.tokens));
    out.best.push_back(reference::select(scores, k));
    if (k >= g.tokens) continue;
    std::vector<double> sorted(scores.begin(), scores.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    if (sorted[size(k - 1)] == sorted[size(k)]) ++out.ties;
  }
  return out;
}

Kept kept(const Unpooled& of, std::int64_t query, std::span<const std::int64_t> selected) {
  const std::vector<std::int64_t>& best = of.best[size(query)];
  std::vector<std::int64_t> both;
  std::set_intersection(best.begin(), best.end(), selected.begin(), selected.end(),
                        std::back_inserter(both));
  const auto hits = static_cast<double>(both.size());
  Kept result;
  result.recall = hits / static_cast<double>(best.size());
  result.f1 = 2 * hits / static_cast<double>(best.size() + selected.size());
  for (const std::int64_t token : selected)
    result.mass += of.attention[size(query * of.tokens + token)];
  return result;
}

std::vector<std::int64_t> tokens_of(std::span<const std::int64_t> pools, std::int64_t ratio) {
  std::vector<std::int64_t> tokens;
  for (const std::int64_t pool : pools)
    for (std::int64_t i = 0; i < ratio; ++i) tokens.push_back(pool * ratio + i);
  return tokens;
}

}  // namespace indexpool::verify::recall
