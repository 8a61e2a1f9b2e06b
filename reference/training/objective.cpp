#include "indexpool/reference/training/objective.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/reference/linear.hpp"
#include "indexpool/reference/training/gradients.hpp"
#include "indexpool/reference/training/group_scores.hpp"

namespace indexpool::reference::training {
namespace {

using Values = std::vector<double>;
using Rows = Eigen::Map<const Matrix<double>>;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double logit_factor(const Geometry& g) {
  return 1 / std::sqrt(static_cast<double>(g.heads * g.head_dim));
}

// q . k of every query and head with every row of keys: [Q H, rows].
Matrix<double> products(const Geometry& g, const Sequence& sequence, const Values& keys) {
  const Rows queries(sequence.queries.data(), g.queries * g.heads, g.head_dim);
  const Rows rows(keys.data(), static_cast<Eigen::Index>(keys.size()) / g.head_dim, g.head_dim);
  return queries * rows.transpose();
}

// [Q, rows]
Values scores_of(const Objective& o, const Sequence& sequence, const Matrix<double>& dots) {
  const Geometry& g = o.geometry;
  Values scores(size(g.queries * dots.cols()));
  for (std::int64_t row = 0; row < g.queries * g.heads; ++row) {
    const double weight = sequence.head_weights[size(row)] * logit_factor(g);
    for (Eigen::Index t = 0; t < dots.cols(); ++t)
      scores[size(row / g.heads * dots.cols() + t)] +=
          weight * (o.options.relu ? std::max(0.0, dots(row, t)) : dots(row, t));
  }
  return scores;
}

// log softmax of a row, times `factor` before.
Values log_softmax(const double* row, std::size_t n, double factor) {
  Values out(n);
  const double largest = factor * *std::max_element(row, row + n);
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = factor * row[i] - largest;
    total += std::exp(out[i]);
  }
  for (double& x : out) x -= std::log(total);
  return out;
}

double median_norm(const Values& keys, std::int64_t dim) {
  Values norms;
  for (std::size_t first = 0; first < keys.size(); first += size(dim)) {
    double square = 0;
    for (std::size_t c = 0; c < size(dim); ++c) square += keys[first + c] * keys[first + c];
    norms.push_back(std::sqrt(square));
  }
  const auto middle = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
  std::nth_element(norms.begin(), middle, norms.end());
  return *middle > 0 ? *middle : 1;
}

Prepared prepared(const Objective& o, Sequence sequence) {
  const Geometry& g = o.geometry;
  Prepared out;
  out.pooling = pooling_of(o.policy, g, sequence);
  if (o.options.dynamic_scaling && !out.pooling.has_norm())
    out.scale = median_norm(sequence.keys, g.head_dim);
  out.token_scores = scores_of(o, sequence, products(g, sequence, sequence.keys));
  out.group_share.assign(size(g.queries * g.groups()), 0);
  for (std::int64_t q = 0; q < g.queries; ++q) {
    const Values p = log_softmax(out.token_scores.data() + q * g.tokens, size(g.tokens),
                                 1 / o.options.temperature);
    for (std::int64_t t = 0; t < g.groups() * g.index_kpool; ++t)
      out.group_share[size(q * g.groups() + t / g.index_kpool)] += std::exp(p[size(t)]);
  }
  for (const double share : out.group_share)
    if (share > 0) out.entropy += share * std::log(share);
  out.sequence = std::move(sequence);
  return out;
}

// Everything the backward pass needs.
struct Pass {
  Arrays<double> arrays;
  Values stored, used, pooled;  // weights before and after their quantiser
  std::vector<char> weights_inside, pooled_inside;
  std::int64_t clipped = 0;
  Matrix<double> dots;  // [Q H, G outputs]
  Values pool_scores;   // [Q, G, outputs]
  GroupScores groups;
};

double logit_scale(const Arrays<double>& parameters) {
  return parameters.find("logit_scale")->second[0];
}

FakeQuantised through(Values values, Width width, const Noise* noise, std::uint64_t path) {
  if (noise == nullptr) return fake_quantise(std::move(values), width);
  return add_quantiser_noise(std::move(values), width, noise->seed, noise->stream * 4 + path);
}

Pass pass(const Objective& o, const Prepared& of, const Arrays<double>& parameters,
          const Noise* noise) {
  const QuantisedPaths& paths = o.options.paths;
  Pass out;
  out.arrays = arrays_of(of.pooling, o.geometry, of.sequence, parameters);
  Values& vectors = out.arrays["vectors"];
  for (double& x : vectors) x /= of.scale;
  vectors = through(std::move(vectors), paths.vectors, noise, 0).values;
  out.stored = forward_weights(of.pooling, out.arrays);
  FakeQuantised weights = through(out.stored, paths.pool_weights, noise, 1);
  out.used = std::move(weights.values);
  FakeQuantised pooled =
      through(forward_pool(of.pooling, out.arrays, out.used), paths.pooled, noise, 2);
  out.weights_inside = std::move(weights.inside);
  out.pooled_inside = std::move(pooled.inside);
  for (const auto* inside : {&out.weights_inside, &out.pooled_inside})
    out.clipped += std::count(inside->begin(), inside->end(), 0);
  out.pooled = std::move(pooled.values);
  for (double& x : out.pooled) x *= of.scale;
  out.dots = products(o.geometry, of.sequence, out.pooled);
  out.pool_scores = scores_of(o, of.sequence, out.dots);
  out.groups = group_scores(out.pool_scores, size(of.pooling.info().outputs),
                            logit_scale(parameters) / o.options.temperature);
  return out;
}

// Gradient of the sequence's summed loss with respect to the pools' scores: [Q, G, outputs]; adds
// that with respect to the logit scale.
Values scores_backward(const Objective& o, const Prepared& of, const Pass& forward, double scale,
                       double& grad_logit_scale) {
  const std::size_t groups = size(o.geometry.groups());
  const double factor = scale / o.options.temperature;
  const std::size_t outputs = size(of.pooling.info().outputs);
  const Values& scores = forward.groups.scores;
  Values grad(forward.pool_scores.size());
  for (std::size_t first = 0; first < scores.size(); first += groups) {
    const Values log_q = log_softmax(scores.data() + first, groups, factor);
    for (std::size_t k = first * outputs; k < (first + groups) * outputs; ++k) {
      const std::size_t g = k / outputs;
      const double of_logit =
          forward.groups.shares[k] * (std::exp(log_q[g - first]) - of.group_share[g]);
      grad[k] = of_logit * factor;
      grad_logit_scale += of_logit * forward.pool_scores[k] / o.options.temperature;
    }
  }
  return grad;
}

// [G outputs, D]: through the heads and relu.
Values pooled_backward(const Objective& o, const Prepared& of, const Pass& forward,
                       const Values& grad_scores) {
  const Geometry& g = o.geometry;
  Matrix<double> grad_dots(forward.dots.rows(), forward.dots.cols());
  for (Eigen::Index row = 0; row < grad_dots.rows(); ++row) {
    const double weight = of.sequence.head_weights[size(row)] * logit_factor(g);
    for (Eigen::Index n = 0; n < grad_dots.cols(); ++n) {
      const double of_score = grad_scores[size(row / g.heads * grad_dots.cols() + n)];
      const bool passes = !o.options.relu || forward.dots(row, n) > 0;
      grad_dots(row, n) = passes ? weight * of_score : 0;
    }
  }
  const Rows queries(of.sequence.queries.data(), g.queries * g.heads, g.head_dim);
  const Matrix<double> grad = grad_dots.transpose() * queries;
  return {grad.data(), grad.data() + grad.size()};
}

void mask(Values& grad, const std::vector<char>& inside) {
  for (std::size_t i = 0; i < grad.size(); ++i)
    if (!inside[i]) grad[i] = 0;
}

void add_sequence(const Objective& o, const Prepared& of, const Arrays<double>& parameters,
                  double share, const Noise* noise, Gradient& out) {
  const Pass forward = pass(o, of, parameters, noise);
  double grad_logit_scale = 0;
  const Values grad_scores =
      scores_backward(o, of, forward, logit_scale(parameters), grad_logit_scale);
  out.parameters["logit_scale"][0] += share * grad_logit_scale;
  Values grad = pooled_backward(o, of, forward, grad_scores);
  for (double& x : grad) x *= share * of.scale;
  mask(grad, forward.pooled_inside);
  // The quantised weights went into the sum, the stored ones came out of the softmax.
  WeightGradients<double> held =
      backward_to_weights(of.pooling, forward.arrays, forward.used, grad);
  mask(held.pool_weights, forward.weights_inside);
  if (o.options.clip_weight_gradients) out.clipped_weights += clip_to_unit(held.pool_weights);
  backward_through_weights(of.pooling, forward.arrays, forward.stored, held.pool_weights,
                           held.direct);
  out.clipped_values += forward.clipped;
  pull_back(of.pooling, o.geometry, of.sequence, held.direct, out.parameters);
}

}  // namespace

Objective prepare(const std::string& policy, const Geometry& geometry,
                  std::vector<Sequence> sequences, const ObjectiveOptions& options) {
  require_trainable(policy);
  Objective objective{policy, geometry, options, {}};
  for (Sequence& sequence : sequences)
    objective.sequences.push_back(prepared(objective, std::move(sequence)));
  return objective;
}

Forward forward(const Objective& o, const Prepared& of, const Arrays<double>& parameters) {
  Pass result = pass(o, of, parameters, nullptr);
  return {std::move(result.stored), std::move(result.pooled), std::move(result.groups.scores)};
}

double loss(const Objective& o, const Arrays<double>& parameters) {
  const std::size_t groups = size(o.geometry.groups());
  const double factor = logit_scale(parameters) / o.options.temperature;
  double total = 0;
  for (const Prepared& of : o.sequences) {
    const Pass result = pass(o, of, parameters, nullptr);
    total += of.entropy;
    const Values& scores = result.groups.scores;
    for (std::size_t first = 0; first < scores.size(); first += groups) {
      const Values log_q = log_softmax(scores.data() + first, groups, factor);
      for (std::size_t g = 0; g < groups; ++g) total -= of.group_share[first + g] * log_q[g];
    }
  }
  return total / static_cast<double>(o.geometry.queries * std::ssize(o.sequences));
}

Gradient gradient(const Objective& o, const Arrays<double>& parameters, Noise noise) {
  Gradient out;
  for (const auto& [name, values] : parameters) out.parameters[name].assign(values.size(), 0);
  const double share = 1 / static_cast<double>(o.geometry.queries * std::ssize(o.sequences));
  for (std::size_t s = 0; s < o.sequences.size(); ++s) {
    const Noise own{noise.seed, noise.stream * 65536 + s};
    const bool quantised = o.options.paths.any();
    add_sequence(o, o.sequences[s], parameters, share, quantised ? &own : nullptr, out);
  }
  return out;
}

}  // namespace indexpool::reference::training
