// What training learns of each policy, and how it becomes the operands of a pooling and back.
//
// All policies pool the same thing here, the keys of index_kpool neighbouring tokens (composite's
// four roles are four neighbours, gated's hidden state is the mean of the group's features), so
// that they can be set side by side. csa pools windows of twice as many rows, of two series that
// both hold the keys.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/tensor.hpp"
#include "indexpool/reference/training/operands.hpp"
#include "indexpool/reference/training/planted.hpp"

namespace indexpool::reference::training {

struct Geometry {
  std::int64_t tokens = 0, features = 0, head_dim = 0, heads = 0, queries = 0, index_kpool = 4;
  std::int64_t groups() const { return tokens / index_kpool; }
};
Geometry geometry_of(const PlantedOptions& options);

// Every learnable policy of the table, and "mean" (nothing but the logit scale). ConfigError for
// others: near names of an unknown one, else why nothing of it is learnt; and all that can be.
const std::vector<std::string>& trainable_policies();
void require_trainable(const std::string& policy);

// "logit_scale" [1]: multiplies the pooled logits, of every policy. kpool: "gate_projection"
// [D, X], "position_bias" [m, D]; csa: "gate_projection" [2, D, X], "position_bias" [m, D],
// "norm_weight" [D]; composite: "pool_matrix" [m], [outputs, m] of several outputs; additive:
// "alpha" "beta" "gamma" "sigma" "tau" [1], "query" [D]; gated: "gate_weight" [X + D], "gate_bias"
// [1]; tfidf: "mix" [3], "position_terms" [m], "query" [D]. `query` stands for the query of an
// entry that is pooled before it is asked for.
//
// They start as a mean (kpool, gated, csa within its window), at the article's fixed weights
// (composite: 0.4, 0.3, 0.2, 0.1, in general falling by equal steps; a second output 0.2, 0.1, 0.4,
// 0.3, our choice) or recommended mixture (additive), tfidf at equal shares; `query` at the mean of
// the training queries.
Arrays<double> initial_parameters(const std::string& policy, const Geometry& geometry,
                                  const std::vector<Sequence>& sequences);
Shape parameter_shape(const std::string& name, const std::string& policy, const Geometry& geometry);
// Back to what the formulas allow: widths at least 0.1, shares and position terms not negative, the
// logit scale at least 0.001.
void project(Arrays<double>& parameters);

// The pooling of one sequence; the outputs of a group stand side by side. The layout depends on the
// sequence, the arrays on the parameters too.
Pooling pooling_of(const std::string& policy, const Geometry& geometry, const Sequence& sequence);
Arrays<double> arrays_of(const Pooling& pooling, const Geometry& geometry, const Sequence& sequence,
                         const Arrays<double>& parameters);
// Adds the gradients with respect to the parameters, given those with respect to the arrays.
void pull_back(const Pooling& pooling, const Geometry& geometry, const Sequence& sequence,
               const Arrays<double>& of_arrays, Arrays<double>& of_parameters);

}  // namespace indexpool::reference::training
