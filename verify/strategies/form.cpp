#include "indexpool/verify/strategies/form.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/training/gradients.hpp"

namespace indexpool::verify::strategies {
namespace {

namespace training = reference::training;

constexpr std::int64_t calibration_sequences = 8, first_calibration = 1'000'000;
// Logits of the gate between the two means: sigmoid from 0.12 to 0.88. Our choice.
constexpr double gate_span = 4;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

const AdditiveTerms published_mixture;
const AccessTerms chosen_mixture;

// Means of keys, weights of the discriminant.
void learn_gate(const std::vector<Stream>& streams, Form& form) {
  const std::size_t dim = size(streams[0].head_dim);
  std::vector<double> salient(dim), other(dim);
  double salient_count = 0, other_count = 0;
  for (const Stream& stream : streams) {
    for (std::int64_t t = 0; t < stream.tokens; ++t) {
      const bool is_salient = stream.salient[size(t / 4)] == t % 4;
      (is_salient ? salient_count : other_count) += 1;
      const auto key = stream.group(0, t, 1);
      for (std::size_t c = 0; c < dim; ++c) (is_salient ? salient : other)[c] += key[c];
    }
  }
  double square = 0;
  std::vector<double> towards(dim);
  for (std::size_t c = 0; c < dim; ++c) {
    salient[c] /= salient_count;
    other[c] /= other_count;
    towards[c] = salient[c] - other[c];
    square += towards[c] * towards[c];
  }
  for (std::size_t c = 0; c < dim; ++c) {
    form.gate_weight.push_back(gate_span * towards[c] / square);
    form.gate_bias -= form.gate_weight[c] * (salient[c] + other[c]) / 2;
  }
}

void learn_query(const std::vector<Stream>& streams, Form& form) {
  form.mean_query.assign(size(streams[0].head_dim), 0);
  const double count = static_cast<double>(streams.size()) * static_cast<double>(streams[0].steps);
  for (const Stream& stream : streams) {
    for (std::int64_t step = 0; step < stream.steps; ++step) {
      const std::vector<double> query = stream.query_of(step);
      for (std::size_t c = 0; c < query.size(); ++c) form.mean_query[c] += query[c] / count;
    }
  }
}

training::Pooling pooling_of(const Form& form, const Groups& groups) {
  training::Pooling p;
  p.policy = form.policy;
  p.index_kpool = groups.vectors;
  p.head_dim = groups.stream->head_dim;
  for (std::size_t g = 0; g < groups.segments.size(); ++g) {
    require(groups.segments[g].count == groups.vectors, "groups of one size");
    p.groups.push_back(
        {static_cast<std::int64_t>(g) * groups.vectors, static_cast<std::int32_t>(g), 0});
  }
  p.offsets.resize(p.m());
  std::iota(p.offsets.begin(), p.offsets.end(), 0);
  return p;
}

std::vector<double> vectors_of(const Groups& groups) {
  std::vector<double> vectors;
  for (const Segment& segment : groups.segments) {
    const auto keys = groups.stream->group(groups.layer, segment.first, segment.count);
    vectors.insert(vectors.end(), keys.begin(), keys.end());
  }
  return vectors;
}

void add_queries(const Form& form, const Groups& groups, training::Arrays<double>& arrays) {
  const bool of_step = form.by_step && groups.step >= 0;
  const std::vector<double> query =
      of_step ? groups.stream->query_of(groups.step) : form.mean_query;
  std::vector<double>& queries = arrays["queries"];
  for (std::size_t g = 0; g < groups.segments.size(); ++g)
    queries.insert(queries.end(), query.begin(), query.end());
}

void add_additive(const Form& form, const Groups& groups, training::Pooling& p,
                  training::Arrays<double>& arrays) {
  add_queries(form, groups, arrays);
  arrays["alpha"] = {published_mixture.alpha};
  arrays["beta"] = {published_mixture.beta};
  arrays["gamma"] = {published_mixture.gamma};
  arrays["sigma"] = {published_mixture.sigma};
  arrays["tau"] = {published_mixture.tau};
  for (const Segment& segment : groups.segments) {
    const std::int64_t from = form.by_step ? groups.tokens : segment.end();
    for (std::int64_t t = segment.first; t < segment.end(); ++t) {
      p.distances.push_back(static_cast<double>(from - 1 - t));
      p.ages.push_back(groups.stream->ages[size(t)]);
    }
  }
}

void add_tfidf(const Form& form, const Groups& groups, training::Pooling& p,
               training::Arrays<double>& arrays) {
  add_queries(form, groups, arrays);
  arrays["mix"].assign(std::begin(chosen_mixture.mix), std::end(chosen_mixture.mix));
  std::vector<double>& position = arrays["position_terms"];
  for (std::int64_t i = 0; i < groups.vectors; ++i)
    position.push_back(static_cast<double>(i + 1) / static_cast<double>(groups.vectors));
  for (const Segment& segment : groups.segments) {
    for (std::int64_t t = segment.first; t < segment.end(); ++t)
      p.access_terms.push_back(groups.stream->access_terms[size(t)]);
  }
}

// "plain" pools from any weights, dividing or not; the rule is in `weights_of`.
std::vector<double> falling_weights(const Groups& groups) {
  const double m = static_cast<double>(groups.vectors);
  std::vector<double> weights;
  for (std::size_t g = 0; g < groups.segments.size(); ++g)
    for (std::int64_t rank = groups.vectors; rank > 0; --rank)
      weights.push_back(2 * static_cast<double>(rank) / (m * (m + 1)));
  return weights;
}

}  // namespace

std::int64_t Form::launches_of_weights() const {
  return policy == "plain" ? 0 : (policy == "gated" ? 2 : 1);
}

WeightSlope Form::slope() const {
  WeightSlope slope;
  if (policy == "gated") {
    slope.dependence = Dependence::gate;
    for (const double w : gate_weight) slope.gate_sum += std::abs(w);
  } else if (policy == "additive") {
    slope.dependence = Dependence::cosine;
    slope.cosine_share = published_mixture.beta;
  } else if (policy == "tfidf") {
    slope.dependence = Dependence::cosine;
    slope.cosine_share = chosen_mixture.mix[2];
  }
  return slope;
}

Form make_form(const std::string& policy, bool by_step, const StreamOptions& options) {
  if (policy != "plain" && policy != "gated" && policy != "additive" && policy != "tfidf")
    throw ConfigError(
        fmt::format("policy {}: strategies are shown on plain, gated, additive and tfidf", policy));
  StreamOptions others = options;
  others.sequences = calibration_sequences;
  others.tokens = 256;
  others.steps = 32;
  others.layers = 1;
  others.calm_share = 0;
  const std::vector<Stream> streams = make_streams(others, first_calibration);
  Form form;
  form.policy = policy;
  form.by_step = by_step;
  learn_gate(streams, form);
  learn_query(streams, form);
  return form;
}

std::vector<double> weights_of(const Form& form, const Groups& groups) {
  if (groups.segments.empty()) return {};
  if (form.policy == "plain") return falling_weights(groups);
  training::Pooling p = pooling_of(form, groups);
  training::Arrays<double> arrays;
  arrays["vectors"] = vectors_of(groups);
  if (form.policy == "gated") {
    arrays["hidden_states"] = {};
    arrays["gate_weight"] = form.gate_weight;
    arrays["gate_bias"] = {form.gate_bias};
  } else if (form.policy == "additive") {
    add_additive(form, groups, p, arrays);
  } else {
    add_tfidf(form, groups, p, arrays);
  }
  return training::forward_weights(p, arrays);
}

std::vector<double> pools_of(const Form& form, const Groups& groups,
                             const std::vector<double>& weights) {
  if (groups.segments.empty()) return {};
  training::Arrays<double> arrays;
  arrays["vectors"] = vectors_of(groups);
  return training::forward_pool(pooling_of(form, groups), arrays, weights);
}

std::vector<double> shares_of(const Form& form, std::span<const double> weights) {
  std::vector<double> shares(weights.begin(), weights.end());
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (find_policy(form.policy).normalisation != Normalisation::division) return shares;
  for (double& share : shares)
    share = sum == 0 ? 1 / static_cast<double>(shares.size()) : share / sum;
  return shares;
}

}  // namespace indexpool::verify::strategies
