#include "indexpool/reference/training/parameters.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/reference/linear.hpp"

namespace indexpool::reference::training {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

using Values = std::vector<double>;
using Rows = Eigen::Map<const Matrix<double>>;
using MutableRows = Eigen::Map<Matrix<double>>;

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

// Windows overlap: rows of a first series before those of a second.
std::int64_t series(const PolicyInfo& policy) {
  return policy.grouping == Grouping::windows ? 2 : 1;
}
std::int64_t vectors_of_group(const PolicyInfo& policy, const Geometry& g) {
  return series(policy) * g.index_kpool;
}

// The row of pool weights of one output of group n.
std::int32_t weight_set(const PolicyInfo& policy, std::int64_t n, std::int64_t output) {
  if (policy.rule == WeightRule::given) return 0;
  const bool shared = policy.rule == WeightRule::role_softmax;
  return static_cast<std::int32_t>(shared ? output : n * policy.outputs + output);
}

const char* why_nothing_is_learnt(const PolicyInfo& policy) {
  return policy.rule == WeightRule::maximum ? "it keeps the largest score and has no weights"
                                            : "its weights are given, not learnt";
}

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
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const PolicyInfo& policy : policies())
      if (policy.learnable) all.emplace_back(policy.name);
    all.emplace_back("mean");
    return all;
  }();
  return names;
}

void require_trainable(const std::string& policy) {
  const std::vector<std::string>& names = trainable_policies();
  if (std::find(names.begin(), names.end(), policy) != names.end()) return;
  const std::vector<std::string> known = policy_names();
  if (std::find(known.begin(), known.end(), policy) == known.end())
    throw ConfigError(fmt::format("unknown policy \"{}\"{} (can be trained: {})", policy,
                                  did_you_mean(policy, known), fmt::join(names, ", ")));
  throw ConfigError(fmt::format("policy \"{}\" cannot be trained: {} (can be trained: {})", policy,
                                why_nothing_is_learnt(find_policy(policy)),
                                fmt::join(names, ", ")));
}

Shape parameter_shape(const std::string& name, const std::string& policy, const Geometry& g) {
  const PolicyInfo& info = find_policy(policy);
  const std::int64_t m = vectors_of_group(info, g);
  if (name == "gate_projection" && series(info) > 1) return {series(info), g.head_dim, g.features};
  if (name == "gate_projection") return {g.head_dim, g.features};
  if (name == "position_bias") return {m, g.head_dim};
  if (name == "pool_matrix" && info.outputs > 1) return {info.outputs, m};
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
  const PolicyInfo& info = p.info();
  if (info.grouping == Grouping::windows) {
    lay_out_windows(p, g);
    return p;
  }
  for (std::int64_t i = 0; i < g.index_kpool; ++i) p.offsets.push_back(i);
  for (std::int64_t n = 0; n < g.groups(); ++n) {
    for (std::int64_t output = 0; output < info.outputs; ++output)
      p.groups.push_back({n * g.index_kpool, weight_set(info, n, output), 0});
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
  arrays["vectors"] = repeated(sequence.keys, series(p.info()));
  if (p.info().rule == WeightRule::given)
    arrays["pool_weights"] = Values(size(g.index_kpool), 1 / static_cast<double>(g.index_kpool));
  if (const auto query = parameters.find("query"); query != parameters.end())
    arrays["queries"] = repeated(query->second, g.groups());
  if (p.info().rule == WeightRule::gated) arrays["hidden_states"] = mean_features(g, sequence);
  if (p.per_channel()) {
    const Rows features(sequence.features.data(), g.tokens, g.features);
    Values& scores = arrays["gate_scores"];
    scores.resize(arrays["vectors"].size());
    for (std::int64_t s = 0; s < series(p.info()); ++s) {
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
  for (std::int64_t s = 0; s < series(p.info()); ++s) {
    const Rows of_scores(scores.data() + s * g.tokens * g.head_dim, g.tokens, g.head_dim);
    double* projection =
        of_parameters.find("gate_projection")->second.data() + s * g.head_dim * g.features;
    MutableRows(projection, g.head_dim, g.features).noalias() += of_scores.transpose() * features;
  }
}

}  // namespace indexpool::reference::training
