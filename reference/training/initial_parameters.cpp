// Where training starts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "indexpool/reference/training/parameters.hpp"

namespace indexpool::reference::training {
namespace {

using Values = std::vector<double>;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

Values mean_query(const Geometry& g, const std::vector<Sequence>& sequences) {
  Values mean(size(g.head_dim));
  double count = 0;
  for (const Sequence& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.queries.size(); ++i)
      mean[i % mean.size()] += sequence.queries[i];
    count += static_cast<double>(g.queries * g.heads);
  }
  for (double& x : mean) x /= std::max(1.0, count);
  return mean;
}

// [outputs, m]. Each further output's start m / outputs places later: outputs that start alike get
// the same gradients and would stay alike.
Values falling_logits(std::int64_t m, std::int64_t outputs) {
  Values logits;
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t i = 0; i < m; ++i)
      logits.push_back(std::log(static_cast<double>(m - (i + m - o * m / outputs) % m)));
  }
  return logits;
}

// As the reference's operands: half a cosine, 1 for the first vector.
Values position_terms(std::int64_t m) {
  Values terms;
  for (std::int64_t i = 0; i < m; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(m);
    terms.push_back((1 + std::cos(std::numbers::pi * turn)) / 2);
  }
  return terms;
}

void put_published_mixture(Arrays<double>& start) {
  const AdditiveTerms published;
  start["alpha"] = {published.alpha};
  start["beta"] = {published.beta};
  start["gamma"] = {published.gamma};
  start["sigma"] = {published.sigma};
  start["tau"] = {published.tau};
}

}  // namespace

Arrays<double> initial_parameters(const std::string& policy, const Geometry& g,
                                  const std::vector<Sequence>& sequences) {
  Arrays<double> start = {{"logit_scale", {1.0}}};
  const auto equal = [&](const char* name, double value) {
    start[name] = Values(size(element_count(parameter_shape(name, policy, g))), value);
  };
  const PolicyInfo& info = find_policy(policy);
  switch (info.rule) {
    case WeightRule::given:
    case WeightRule::maximum:
      break;
    case WeightRule::role_softmax:
      start["pool_matrix"] = falling_logits(g.index_kpool, info.outputs);
      break;
    case WeightRule::additive:
      put_published_mixture(start);
      start["query"] = mean_query(g, sequences);
      break;
    case WeightRule::gated:
      equal("gate_weight", 0);
      equal("gate_bias", 0);
      break;
    case WeightRule::tfidf:
      equal("mix", 1.0 / 3);
      start["position_terms"] = position_terms(g.index_kpool);
      start["query"] = mean_query(g, sequences);
      break;
    case WeightRule::channel_softmax:
      equal("gate_projection", 0);
      equal("position_bias", 0);
      for (const std::string& name : array_names(info))
        if (name == "norm_weight") equal("norm_weight", 1);
      break;
  }
  return start;
}

}  // namespace indexpool::reference::training
