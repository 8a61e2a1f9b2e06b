// What a cache holds, as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/cache_layout.hpp"

namespace indexpool::verify {

// Pools of all sequences, back to back.
struct StoredPools {
  std::int64_t pools = 0, head_dim = 0;
  std::vector<double> codes;                // [P, D] values of the codes, without the scale
  std::vector<double> scales;               // [P]; 1 when not quantised
  std::vector<std::vector<std::byte>> raw;  // [P] code bytes, then the scale's
};
StoredPools read_stored(const IndexerInputs& inputs, const CacheLayout& layout,
                        const std::vector<std::byte>& cache);

// The cache the reference would have written: for operations downstream of a pool kernel that
// failed or does not take the problem.
std::vector<std::byte> reference_cache(const IndexerInputs& inputs, const CacheLayout& layout,
                                       const reference::Pooled& pooled);

// Query codes and scales as the reference would have quantised them; the queries themselves when
// the mode does not quantise.
struct StoredQueries {
  std::vector<std::byte> codes;
  std::vector<float> scales;
};
StoredQueries reference_queries(const IndexerInputs& inputs);

// The elements of `bytes` as doubles.
std::vector<double> decode(DType dtype, const std::vector<std::byte>& bytes);

// "sequence 2, pool 17" of pool `pool` of all sequences.
std::string pool_name(const IndexerInputs& inputs, std::int64_t pool);

}  // namespace indexpool::verify
