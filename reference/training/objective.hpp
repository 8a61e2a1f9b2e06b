// The objective of training: match the unpooled indexer's distribution.
//
// For a query, s_t = sum_h head_weight_h relu(q_h . k_t) / sqrt(H D) gives p = softmax(s / T) over
// the tokens (without relu where the scores are an attention head's, which has none), P_g its sum
// over the tokens of group g. The pooled keys give S_g likewise, and Q = softmax(logit_scale S /
// T); a group of several pools has the sum of their shares, as if it were one pool of score S_g.
// Loss: KL(P || Q) in nats, averaged over queries and sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/reference/training/fake_quantise.hpp"
#include "indexpool/reference/training/parameters.hpp"

namespace indexpool::reference::training {

struct ObjectiveOptions {
  double temperature = 1;
  QuantisedPaths paths;
  // Article C: vectors divided by a robust statistic of their norms (the median of a sequence)
  // before pooling, pooled vectors multiplied by it. Not for csa, whose norm sets the length
  // anyway.
  bool dynamic_scaling = false;
  bool clip_weight_gradients = true;
  bool relu = true;
};

// A sequence with what does not change in training.
struct Prepared {
  Sequence sequence;
  Pooling pooling;
  double scale = 1;                  // of dynamic scaling
  std::vector<double> token_scores;  // [Q, N] unpooled
  std::vector<double> group_share;   // [Q, G]: P
  double entropy = 0;                // sum of P log P over queries and groups
};
struct Objective {
  std::string policy;
  Geometry geometry;
  ObjectiveOptions options;
  std::vector<Prepared> sequences;
};
Objective prepare(const std::string& policy, const Geometry& geometry,
                  std::vector<Sequence> sequences, const ObjectiveOptions& options);

// One forward pass: through the quantisers as they round, or with the noise of (seed, stream).
struct Noise {
  std::uint64_t seed = 0, stream = 0;
};
struct Forward {
  std::vector<double> pool_weights;  // as stored, before their quantiser
  std::vector<double> pooled;        // [G, outputs, D]
  std::vector<double> scores;        // [Q, G], S before it is multiplied by the logit scale
};
Forward forward(const Objective& objective, const Prepared& of, const Arrays<double>& parameters);

// The objective with the quantisers as they round.
double loss(const Objective& objective, const Arrays<double>& parameters);

// Gradients for the parameters named in `parameters`; straight through the quantisers, taken with
// noise in their place when there are any.
struct Gradient {
  Arrays<double> parameters;
  std::int64_t clipped_weights = 0;  // gradients of weights cut to [-1, 1]
  std::int64_t clipped_values = 0;   // values beyond a quantiser's range: no gradient
};
Gradient gradient(const Objective& objective, const Arrays<double>& parameters, Noise noise);

}  // namespace indexpool::reference::training
