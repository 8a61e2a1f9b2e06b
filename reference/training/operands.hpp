// What a pooled vector depends on, as named arrays of any scalar type: the form in which the
// published poolings are differentiated and trained. Formulas: model/pooling.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/pooling.hpp"

namespace indexpool::reference::training {

// Names are those of the operands: "vectors" [R, D]; by rule "pool_weights" [sets, m],
// "pool_matrix" [sets, m], "queries" [G, D], "alpha" ... "tau" [1], "hidden_states" [T, X],
// "gate_weight" [heads, X + D], "gate_bias" [heads], "mix" [3], "position_terms" [m], "gate_scores"
// [R, D], "position_bias" [m, D]; csa also "norm_weight" [D].
template <class T>
using Arrays = std::map<std::string, std::vector<T>, std::less<>>;

// What is not differentiated: the policy, which rows make a group, constants of the formulas.
struct Pooling {
  std::string policy = "kpool";
  std::int64_t index_kpool = 4, head_dim = 128, heads = 1;
  std::vector<VectorGroup> groups;
  std::vector<std::int64_t> offsets;    // [m]
  std::vector<double> distances, ages;  // [G, m], additive
  std::vector<double> access_terms;     // [G, m] tf idf, tfidf
  std::vector<double> rope;             // [G, rope_dims], csa
  std::int64_t rope_dims = 0;
  double eps = 1e-6;
  bool raw_cosine = false;

  const PolicyInfo& info() const { return find_policy(policy); }
  bool per_channel() const { return info().rule == WeightRule::channel_softmax; }
  bool has_norm() const { return policy == "csa"; }
  std::size_t m() const { return static_cast<std::size_t>(index_kpool); }
  std::size_t dim() const { return static_cast<std::size_t>(head_dim); }
  // First element in "vectors" of vector i of a group.
  std::size_t element(const VectorGroup& group, std::size_t i) const {
    return static_cast<std::size_t>(group.first_row + offsets[i]) * dim();
  }
};

// The arrays a policy reads, "vectors" first. ConfigError for block_max, which pools scores.
std::vector<std::string> array_names(const PolicyInfo& policy);

struct Operands {
  Pooling pooling;
  Arrays<double> arrays;
};
// Stored operands, element by element. ConfigError as validate(inputs).
Operands operands_of(const PoolingInputs& inputs);

// Every array there, sizes that fit each other: ConfigError naming array, found and expected size.
template <class T>
void check_arrays(const Pooling& pooling, const Arrays<T>& arrays);

}  // namespace indexpool::reference::training
