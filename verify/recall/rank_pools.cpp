#include "indexpool/verify/recall/rank_pools.hpp"

#include <algorithm>

#include "indexpool/reference/training/train.hpp"

namespace indexpool::verify::recall {
namespace {

using namespace reference::training;
using reference::training::Sequence;

// Far below any other logit: a softmax gives exactly 0.
constexpr double never = -1e4;

// Fixed weights are those of a composite that is not trained: it starts at the falling ones.
std::string trained_as(const Policy& policy) {
  return policy.name == "last" || policy.name == "plain" ? "composite" : policy.name;
}

Arrays<double> start_of(const Policy& policy, const Objective& objective,
                        const std::vector<Sequence>& learnt_from) {
  Arrays<double> start = initial_parameters(objective.policy, objective.geometry, learnt_from);
  if (policy.name == "last") {
    std::vector<double>& logits = start["pool_matrix"];
    std::fill(logits.begin(), logits.end(), never);
    logits.back() = 0;
  }
  return start;
}

}  // namespace

Ranking rank_by_pooling(const DataSet& data, const CompareOptions& options, const Policy& policy,
                        Form form, std::int64_t ratio) {
  Geometry geometry = data.geometry;
  geometry.index_kpool = ratio;
  TrainOptions how;
  how.epochs = options.epochs;
  how.data.seed = options.seed;
  how.objective.paths.pooled = options.pooled;
  how.objective.relu = data.relu;
  const std::string name = trained_as(policy);
  const std::vector<Sequence> seen = grouped(data, data.learnt_from, ratio);
  Objective objective{name, geometry, how.objective, {}};
  Arrays<double> parameters = start_of(policy, objective, seen);
  Ranking ranking;
  if (form == Form::trained) {
    objective = prepare(name, geometry, seen, how.objective);
    ranking.loss_before = loss(objective, parameters);
    parameters = fit(how, objective, std::move(parameters));
    ranking.loss_after = loss(objective, parameters);
  }
  const Objective other =
      prepare(name, geometry, grouped(data, data.held_out, ratio), how.objective);
  for (const Prepared& of : other.sequences)
    ranking.scores.push_back(forward(other, of, parameters).scores);
  return ranking;
}

std::vector<double> largest_scores(const Unpooled& of, std::int64_t ratio) {
  std::vector<double> largest;
  const auto step = static_cast<std::ptrdiff_t>(ratio);
  for (auto first = of.scores.begin(); first != of.scores.end(); first += step)
    largest.push_back(*std::max_element(first, first + step));
  return largest;
}

std::vector<double> best_counts(const Unpooled& of, std::int64_t ratio) {
  const std::int64_t pools = of.tokens / ratio;
  std::vector<double> counts(of.best.size() * static_cast<std::size_t>(pools));
  for (std::size_t q = 0; q < of.best.size(); ++q)
    for (const std::int64_t token : of.best[q])
      ++counts[q * static_cast<std::size_t>(pools) + static_cast<std::size_t>(token / ratio)];
  return counts;
}

}  // namespace indexpool::verify::recall
