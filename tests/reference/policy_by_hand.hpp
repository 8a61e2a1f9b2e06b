// Operands of one group, written out.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/pooling.hpp"

namespace indexpool::reference {

inline Tensor tensor(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor result(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.set(static_cast<std::int64_t>(i), values[i]);
  }
  return result;
}
inline Tensor f32(const Shape& shape, const std::vector<double>& values) {
  return tensor(DType::f32, shape, values);
}

// One group of m vectors of `dim` channels.
inline PoolingInputs one_group(const std::string& policy, std::int64_t dim,
                               const std::vector<double>& vectors, const char* mode = "f32") {
  PoolingInputs in;
  in.policy = policy;
  in.mode = pooling_mode(mode);
  in.head_dim = dim;
  in.index_kpool = static_cast<std::int64_t>(vectors.size()) / dim;
  in.groups = {{0, 0, 0}};
  for (std::int64_t i = 0; i < in.index_kpool; ++i) in.offsets.push_back(i);
  in.vectors = tensor(in.mode.storage, {in.index_kpool, dim}, vectors);
  return in;
}

// additive_raw with nothing but the cosine, against a query along the first of two channels.
inline PoolingInputs cosines_only(const std::vector<double>& vectors) {
  auto in = one_group("additive_raw", 2, vectors);
  AdditiveTerms terms;
  terms.queries = f32({1, 2}, {1, 0});
  terms.distances = terms.ages = f32({1, in.index_kpool}, {});
  terms.alpha = terms.gamma = 0;
  terms.beta = 1;
  terms.raw_cosine = true;
  in.weights = terms;
  return in;
}

}  // namespace indexpool::reference
