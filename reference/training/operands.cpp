#include "indexpool/reference/training/operands.hpp"

#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/scalar.hpp"

namespace indexpool::reference::training {
namespace {

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.at(static_cast<std::int64_t>(i));
  return values;
}

std::vector<double> access_terms(const PoolingInputs& in, const AccessTerms& terms) {
  std::vector<double> result;
  for (std::int64_t g = 0; g < in.group_count(); ++g) {
    const std::int64_t first = g * in.index_kpool;
    double all = 0;
    for (std::int64_t i = in.groups[static_cast<std::size_t>(g)].absent; i < in.index_kpool; ++i)
      all += terms.accesses.at(first + i);
    for (std::int64_t i = first; i < first + in.index_kpool; ++i) {
      const double tf = all > 0 ? terms.accesses.at(i) / all : 0;
      const double groups = static_cast<double>(terms.all_groups);
      result.push_back(tf * (std::log((1 + groups) / (1 + terms.groups_accessed.at(i))) + 1));
    }
  }
  return result;
}

struct Fill {
  const PoolingInputs& in;
  Operands& out;

  void put(const char* name, const Tensor& tensor) const { out.arrays[name] = values_of(tensor); }
  void operator()(const GivenWeights& w) const { put("pool_weights", w.pool_weights); }
  void operator()(const RoleMatrix& w) const { put("pool_matrix", w.pool_matrix); }
  void operator()(const AdditiveTerms& w) const {
    put("queries", w.queries);
    out.arrays["alpha"] = {w.alpha};
    out.arrays["beta"] = {w.beta};
    out.arrays["gamma"] = {w.gamma};
    out.arrays["sigma"] = {w.sigma};
    out.arrays["tau"] = {w.tau};
    out.pooling.distances = values_of(w.distances);
    out.pooling.ages = values_of(w.ages);
    out.pooling.raw_cosine = w.raw_cosine;
  }
  void operator()(const GateOperands& w) const {
    put("hidden_states", w.hidden_states);
    put("gate_weight", w.gate_weight);
    put("gate_bias", w.gate_bias);
  }
  void operator()(const AccessTerms& w) const {
    put("queries", w.queries);
    put("position_terms", w.position_terms);
    out.arrays["mix"] = {w.mix[0], w.mix[1], w.mix[2]};
    out.pooling.access_terms = access_terms(in, w);
  }
  void operator()(const ChannelScores& w) const {
    put("gate_scores", w.gate_scores);
    put("position_bias", w.position_bias);
  }
  void operator()(const NoWeights&) const {}
};

// 0: any size.
std::size_t expected_size(const Pooling& p, std::string_view name) {
  if (name == "queries") return p.groups.size() * p.dim();
  if (name == "gate_bias") return static_cast<std::size_t>(p.heads);
  if (name == "mix") return 3;
  if (name == "position_terms") return p.m();
  if (name == "position_bias") return p.m() * p.dim();
  if (name == "norm_weight") return p.dim();
  for (const char* scalar : {"alpha", "beta", "gamma", "sigma", "tau"}) {
    if (name == scalar) return 1;
  }
  return 0;
}

void require(std::string_view name, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw ConfigError(fmt::format("{}: found {} numbers, expected {}", name, found, expected));
}

}  // namespace

std::vector<std::string> array_names(const PolicyInfo& policy) {
  std::vector<std::string> names = {"vectors"};
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  switch (policy.rule) {
    case WeightRule::given:
      add({"pool_weights"});
      break;
    case WeightRule::role_softmax:
      add({"pool_matrix"});
      break;
    case WeightRule::additive:
      add({"queries", "alpha", "beta", "gamma", "sigma", "tau"});
      break;
    case WeightRule::gated:
      add({"hidden_states", "gate_weight", "gate_bias"});
      break;
    case WeightRule::tfidf:
      add({"queries", "mix", "position_terms"});
      break;
    case WeightRule::channel_softmax:
      add({"gate_scores", "position_bias"});
      if (policy.name == "csa") add({"norm_weight"});
      break;
    case WeightRule::maximum:
      throw ConfigError("policy block_max pools scores: it has no vectors to differentiate");
  }
  return names;
}

Operands operands_of(const PoolingInputs& inputs) {
  validate(inputs);
  Operands out;
  Pooling& p = out.pooling;
  p.policy = inputs.policy;
  p.index_kpool = inputs.index_kpool;
  p.head_dim = inputs.head_dim;
  p.heads = inputs.heads;
  p.groups = inputs.groups;
  p.offsets = inputs.offsets;
  out.arrays["vectors"] = values_of(inputs.vectors);
  std::visit(Fill{inputs, out}, inputs.weights);
  if (p.has_norm()) {
    out.arrays["norm_weight"] = values_of(inputs.norm_rope.norm_weight);
    p.rope = values_of(inputs.norm_rope.rope);
    p.rope_dims = inputs.norm_rope.rope_dims;
    p.eps = inputs.norm_rope.eps;
  }
  return out;
}

template <class T>
void check_arrays(const Pooling& p, const Arrays<T>& arrays) {
  for (const std::string& name : array_names(p.info())) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) throw ConfigError(name + ": missing");
    const std::size_t expected = expected_size(p, name);
    if (expected > 0) require(name, found->second.size(), expected);
  }
  const std::size_t vectors = arrays.find("vectors")->second.size();
  std::size_t sets = 0;
  for (const VectorGroup& group : p.groups) {
    for (std::size_t i = static_cast<std::size_t>(group.absent); i < p.m(); ++i) {
      if (p.element(group, i) + p.dim() > vectors)
        throw ConfigError(fmt::format("vectors: found {} numbers, a group ends at {}", vectors,
                                      p.element(group, i) + p.dim()));
    }
    sets = std::max(sets, static_cast<std::size_t>(group.weight_set) + 1);
  }
  for (const char* name : {"pool_weights", "pool_matrix"}) {
    const auto found = arrays.find(name);
    if (found != arrays.end() && found->second.size() < sets * p.m())
      require(name, found->second.size(), sets * p.m());
  }
  if (p.per_channel()) require("gate_scores", arrays.find("gate_scores")->second.size(), vectors);
  const std::size_t terms = p.groups.size() * p.m();
  if (p.info().rule == WeightRule::additive) require("distances", p.distances.size(), terms);
  if (p.info().rule == WeightRule::additive) require("ages", p.ages.size(), terms);
  if (p.info().rule == WeightRule::tfidf) require("access_terms", p.access_terms.size(), terms);
}

template void check_arrays(const Pooling&, const Arrays<double>&);
template void check_arrays(const Pooling&, const Arrays<Quad>&);

}  // namespace indexpool::reference::training
