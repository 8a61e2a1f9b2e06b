#include "indexpool/reference/training/evaluate.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/training/draws.hpp"

namespace indexpool::reference::training {
namespace {

constexpr std::uint64_t bootstrap_stream = 2;
constexpr std::size_t resamples = 2000;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::span<const double> row(const std::vector<double>& values, std::int64_t index, std::int64_t n) {
  return std::span(values).subspan(size(index * n), size(n));
}

struct Kept {
  double recall = 0, mass = 0;
};
Kept kept(const Geometry& g, const Prepared& of, const std::vector<double>& scores, std::int64_t q,
          std::int64_t k) {
  Kept result;
  const auto tokens = select(row(of.token_scores, q, g.tokens), k);
  const auto groups = select(row(scores, q, g.groups()), k);
  for (const std::int64_t token : tokens) {
    if (std::binary_search(groups.begin(), groups.end(), token / g.index_kpool))
      result.recall += 1 / static_cast<double>(tokens.size());
  }
  for (const std::int64_t group : groups)
    result.mass += of.group_share[size(q * g.groups() + group)];
  return result;
}

// Of m shares, `stride` apart, over log m.
double relative_entropy(const double* w, std::size_t m, std::size_t stride) {
  double sum = 0, entropy = 0;
  for (std::size_t i = 0; i < m; ++i) sum += std::max(0.0, w[i * stride]);
  for (std::size_t i = 0; i < m; ++i) {
    const double weight = std::max(0.0, w[i * stride]);
    if (weight > 0) entropy -= weight / sum * std::log(weight / sum);
  }
  return m > 1 ? entropy / std::log(static_cast<double>(m)) : 1;
}

double mean_entropy(const Pooling& p, const std::vector<double>& w) {
  const std::size_t stride = p.per_channel() ? p.dim() : 1, set = p.m() * stride;
  const bool of_groups = w.size() == p.groups.size() * set;
  double sum = 0, count = 0;
  for (std::size_t n = 0, first = 0; set > 0 && first + set <= w.size(); ++n, first += set) {
    if (of_groups && p.groups[n].absent > 0) continue;
    for (std::size_t c = 0; c < stride; ++c, ++count)
      sum += relative_entropy(w.data() + first + c, p.m(), stride);
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

Interval bootstrap(const std::vector<std::vector<double>>& rows, std::uint64_t seed) {
  std::vector<double> means;
  for (const auto& values : rows) {
    double sum = 0;
    for (const double x : values) sum += x;
    means.push_back(values.empty() ? 0 : sum / static_cast<double>(values.size()));
  }
  if (means.empty()) return {};
  const double n = static_cast<double>(means.size());
  Interval result;
  for (const double mean : means) result.value += mean;
  result.value /= n;  // a mean of ones is 1
  Draws draws(seed, bootstrap_stream);
  std::vector<double> drawn;
  for (std::size_t r = 0; r < resamples; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < means.size(); ++i)
      sum += means[size(draws.below(std::ssize(means)))];
    drawn.push_back(sum / n);
  }
  std::sort(drawn.begin(), drawn.end());
  result.low = drawn[resamples / 40];
  result.high = drawn[resamples - 1 - resamples / 40];
  return result;
}

Evaluation evaluate(const Objective& held_out, const Arrays<double>& parameters, std::int64_t k,
                    std::uint64_t seed) {
  const Geometry& g = held_out.geometry;
  Evaluation result;
  std::vector<std::vector<double>> recalls;
  const double sequences = static_cast<double>(held_out.sequences.size());
  for (const Prepared& of : held_out.sequences) {
    const Forward pooled = forward(held_out, of, parameters);
    std::vector<double>& recall = recalls.emplace_back();
    for (std::int64_t q = 0; q < g.queries; ++q) {
      const Kept here = kept(g, of, pooled.scores, q, k);
      recall.push_back(here.recall);
      result.mass += here.mass / (sequences * static_cast<double>(g.queries));
    }
    result.entropy += mean_entropy(of.pooling, pooled.pool_weights) / sequences;
  }
  result.recall = bootstrap(recalls, seed);
  result.loss = loss(held_out, parameters);
  return result;
}

}  // namespace indexpool::reference::training
