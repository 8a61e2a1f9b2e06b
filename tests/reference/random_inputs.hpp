// Random indexer inputs of any shape and mode.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"

namespace indexpool::reference {

// How the numbers are drawn.
struct Draw {
  std::uint64_t seed = 1;
  std::int64_t kpool = 4, dim = 32, heads = 2;
  std::vector<std::int64_t> lengths = {16};
  double key_scale = 1, gate_scale = 1, ape_scale = 0.25;
  bool extreme_gates = false;  // +-40, +-88, +-1e4 and the ends of expf's range among them
};

inline void fill_normal(Tensor& tensor, double scale, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, scale * normal(random));
}

inline void fill_extreme(Tensor& tensor, std::mt19937_64& random) {
  const double values[] = {40, -40, 88, -88, 1e4, -1e4, 0, 87.5, -103};
  std::uniform_int_distribution<std::size_t> pick(0, std::size(values) - 1);
  std::bernoulli_distribution keep(0.5);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (keep(random)) tensor.set(i, values[pick(random)]);
  }
}

inline IndexerInputs random_inputs(const Draw& draw, const NumericMode& mode) {
  std::mt19937_64 random(draw.seed);
  IndexerInputs inputs;
  inputs.config.index_head_dim = draw.dim;
  inputs.config.index_kpool = draw.kpool;
  inputs.config.index_n_heads = draw.heads;
  inputs.config.index_topk = 4 * draw.kpool;
  inputs.mode = mode;
  std::int64_t rows = 0;
  for (const auto length : draw.lengths) {
    inputs.sequences.push_back({0, length, rows});
    rows += length;
  }
  inputs.keys = Tensor(mode.storage, {rows, draw.dim});
  inputs.gate_scores = Tensor(mode.storage, {rows, draw.dim});
  inputs.ape = Tensor(DType::f32, {draw.kpool, draw.dim});
  inputs.queries = Tensor(mode.storage, {rows, draw.heads, draw.dim});
  inputs.head_weights = Tensor(DType::f32, {rows, draw.heads});
  fill_normal(inputs.keys, draw.key_scale, random);
  fill_normal(inputs.gate_scores, draw.gate_scale, random);
  if (draw.extreme_gates) fill_extreme(inputs.gate_scores, random);
  fill_normal(inputs.ape, draw.ape_scale, random);
  fill_normal(inputs.queries, 1, random);
  fill_normal(inputs.head_weights, 0.3, random);
  inputs.logit_scale = 1 / std::sqrt(static_cast<double>(draw.dim * draw.heads));
  return inputs;
}

}  // namespace indexpool::reference
