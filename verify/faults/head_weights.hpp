// Rows of logits with everything but their head weights worked out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/verify/faults/subject.hpp"

namespace indexpool::verify::faults {

struct HeadWeightScene {
  struct Row {
    std::int64_t row = 0;         // of the inputs
    std::vector<float> factors;   // [heads]: logit_scale * query scale
    std::vector<float> products;  // [visible pools, heads]: relu(q . k) of the codes
    std::vector<float> scales;    // [visible pools]
  };
  IndexerInputs inputs;
  CacheRun cache;
  QueryOutput queries;    // codes and scales; the queries themselves when not quantised
  std::vector<Row> rows;  // that see a pool

  HeadWeightScene(const std::string& mode, std::uint64_t seed);
  std::span<const float> weights(const Row& row) const;
  static std::vector<float> logits(const Row& row, std::span<const float> weights);
};

}  // namespace indexpool::verify::faults
