#include "indexpool/reference/training/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/linear.hpp"

namespace indexpool::reference::training {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

using Values = std::vector<double>;
using Rows = Eigen::Map<const Matrix<double>>;
using MutableRows = Eigen::Map<Matrix<double>>;

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

// [G, X]
Values mean_features(const Geometry& g, const Sequence& sequence) {
  Values mean(size(g.groups() * g.features));
  for (std::int64_t t = 0; t < g.groups() * g.index_kpool; ++t) {
    for (std::int64_t x = 0; x < g.features; ++x) {
      mean[size(t / g.index_kpool * g.features + x)] +=
          sequence.features[size(t * g.features + x)] / static_cast<double>(g.index_kpool);
    }
  }
  return mean;
}

Values repeated(const Values& row, std::int64_t times) {
  Values all;
  for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), row.begin(), row.end());
  return all;
}

Values falling_logits(std::int64_t m) {
  Values logits;
  for (std::int64_t i = 0; i < m; ++i) logits.push_back(std::log(static_cast<double>(m - i)));
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

// csa: rows of its first series before those of its second.
std::int64_t series(const Pooling& p) { return p.has_norm() ? 2 : 1; }

double least(std::string_view name) {
  if (name == "sigma" || name == "tau") return 0.1;
  if (name == "logit_scale") return 1e-3;
  for (const char* share : {"alpha", "beta", "gamma", "mix", "position_terms"}) {
    if (name == share) return 0;
  }
  return -std::numeric_limits<double>::infinity();
}

void lay_out_windows(Pooling& p, const Geometry& g) {
  const std::int64_t window = g.index_kpool;
  p.index_kpool = 2 * window;
  for (std::int64_t i = 0; i < window; ++i) p.offsets.push_back(i - window);
  for (std::int64_t i = 0; i < window; ++i) p.offsets.push_back(g.tokens + i);
  for (std::int64_t n = 0; n < g.groups(); ++n) {
    const auto absent = static_cast<std::int32_t>(n == 0 ? window : 0);
    p.groups.push_back({n * window, static_cast<std::int32_t>(n), absent});
  }
}

}  // namespace

Geometry geometry_of(const PlantedOptions& o) {
  return {o.tokens, o.features, o.head_dim, o.heads, o.queries, o.index_kpool};
}

const std::vector<std::string>& trainable_policies() {
  static const std::vector<std::string> names = {"kpool", "composite", "additive", "gated",
                                                 "tfidf", "csa",       "mean",     "additive_raw"};
  return names;
}

void require_trainable(const std::string& policy) {
  const std::vector<std::string>& names = trainable_policies();
  if (std::find(names.begin(), names.end(), policy) != names.end()) return;
  find_policy(policy);  // an unknown name has near ones
  throw ConfigError(fmt::format("policy \"{}\" cannot be trained (expected one of {})", policy,
                                fmt::join(names, ", ")));
}

Arrays<double> initial_parameters(const std::string& policy, const Geometry& g,
                                  const std::vector<Sequence>& sequences) {
  const auto zeros = [](std::int64_t n) { return Values(size(n), 0.0); };
  const std::int64_t m = policy == "csa" ? 2 * g.index_kpool : g.index_kpool;
  Arrays<double> start = {{"logit_scale", {1.0}}};
  if (policy == "kpool" || policy == "csa") {
    const std::int64_t sets = policy == "csa" ? 2 : 1;
    start["gate_projection"] = zeros(sets * g.head_dim * g.features);
    start["position_bias"] = zeros(m * g.head_dim);
    if (policy == "csa") start["norm_weight"] = Values(size(g.head_dim), 1.0);
  } else if (policy == "composite") {
    start["pool_matrix"] = falling_logits(m);
  } else if (policy == "additive" || policy == "additive_raw") {
    const AdditiveTerms published;
    start["alpha"] = {published.alpha};
    start["beta"] = {published.beta};
    start["gamma"] = {published.gamma};
    start["sigma"] = {published.sigma};
    start["tau"] = {published.tau};
    start["query"] = mean_query(g, sequences);
  } else if (policy == "gated") {
    start["gate_weight"] = zeros(g.features + g.head_dim);
    start["gate_bias"] = {0.0};
  } else if (policy == "tfidf") {
    start["mix"] = Values(3, 1.0 / 3);
    start["position_terms"] = position_terms(m);
    start["query"] = mean_query(g, sequences);
  }
  return start;
}

Shape parameter_shape(const std::string& name, const std::string& policy, const Geometry& g) {
  const std::int64_t m = policy == "csa" ? 2 * g.index_kpool : g.index_kpool;
  if (name == "gate_projection" && policy == "csa") return {2, g.head_dim, g.features};
  if (name == "gate_projection") return {g.head_dim, g.features};
  if (name == "position_bias") return {m, g.head_dim};
  if (name == "pool_matrix" || name == "position_terms") return {m};
  if (name == "query" || name == "norm_weight") return {g.head_dim};
  if (name == "gate_weight") return {g.features + g.head_dim};
  if (name == "mix") return {3};
  return {1};
}

void project(Arrays<double>& parameters) {
  for (auto& [name, values] : parameters) {
    const double floor = least(name);
    for (double& x : values) x = std::max(x, floor);
  }
}

Pooling pooling_of(const std::string& policy, const Geometry& g, const Sequence& sequence) {
  Pooling p;
  p.policy = policy;
  p.index_kpool = g.index_kpool;
  p.head_dim = g.head_dim;
  p.raw_cosine = policy == "additive_raw";
  if (p.has_norm()) {
    lay_out_windows(p, g);
    return p;
  }
  const bool one_set = policy == "composite" || policy == "mean";
  for (std::int64_t i = 0; i < g.index_kpool; ++i) p.offsets.push_back(i);
  for (std::int64_t n = 0; n < g.groups(); ++n) {
    p.groups.push_back({n * g.index_kpool, static_cast<std::int32_t>(one_set ? 0 : n), 0});
    for (std::int64_t i = 0; i < g.index_kpool; ++i)
      p.distances.push_back(static_cast<double>(g.index_kpool - 1 - i));
  }
  p.ages = sequence.ages;
  p.access_terms = sequence.access_terms;
  return p;
}

Arrays<double> arrays_of(const Pooling& p, const Geometry& g, const Sequence& sequence,
                         const Arrays<double>& parameters) {
  Arrays<double> arrays;
  for (const std::string& name : array_names(p.info())) {
    if (const auto same = parameters.find(name); same != parameters.end())
      arrays[name] = same->second;
  }
  arrays["vectors"] = repeated(sequence.keys, series(p));
  if (p.policy == "mean")
    arrays["pool_weights"] = Values(size(g.index_kpool), 1 / static_cast<double>(g.index_kpool));
  if (const auto query = parameters.find("query"); query != parameters.end())
    arrays["queries"] = repeated(query->second, g.groups());
  if (p.policy == "gated") arrays["hidden_states"] = mean_features(g, sequence);
  if (p.per_channel()) {
    const Rows features(sequence.features.data(), g.tokens, g.features);
    Values& scores = arrays["gate_scores"];
    scores.resize(arrays["vectors"].size());
    for (std::int64_t s = 0; s < series(p); ++s) {
      const std::int64_t first = s * g.head_dim * g.features;
      const Rows projection(parameters.find("gate_projection")->second.data() + first, g.head_dim,
                            g.features);
      MutableRows(scores.data() + s * g.tokens * g.head_dim, g.tokens, g.head_dim).noalias() =
          features * projection.transpose();
    }
  }
  return arrays;
}

void pull_back(const Pooling& p, const Geometry& g, const Sequence& sequence,
               const Arrays<double>& of_arrays, Arrays<double>& of_parameters) {
  for (auto& [name, gradient] : of_parameters) {
    const auto same = of_arrays.find(name);
    if (same == of_arrays.end()) continue;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += same->second[i];
  }
  if (const auto query = of_parameters.find("query"); query != of_parameters.end()) {
    const Values& queries = of_arrays.find("queries")->second;
    for (std::size_t i = 0; i < queries.size(); ++i)
      query->second[i % query->second.size()] += queries[i];
  }
  if (!p.per_channel()) return;
  const Rows features(sequence.features.data(), g.tokens, g.features);
  const Values& scores = of_arrays.find("gate_scores")->second;
  for (std::int64_t s = 0; s < series(p); ++s) {
    const Rows of_scores(scores.data() + s * g.tokens * g.head_dim, g.tokens, g.head_dim);
    double* projection =
        of_parameters.find("gate_projection")->second.data() + s * g.head_dim * g.features;
    MutableRows(projection, g.head_dim, g.features).noalias() += of_scores.transpose() * features;
  }
}

}  // namespace indexpool::reference::training
