// What pooling and quantisation lose, as named numbers: the distance between the exact and the
// faithful oracle, and between pooled selection and token-by-token selection.
#pragma once

#include <cstdint>

#include "indexpool/model/case.hpp"

namespace indexpool::reference {

// Averages over the pools, and over the rows that have more pools than they may select. Without
// such rows `rows` is 0 and the selection's numbers are 1 and 0.
struct Loss {
  // |faithful - exact| / |exact|, Euclidean, per pool, before the rotation.
  double pooling_relative_error = 0, pooling_worst_relative_error = 0;
  // |code * scale - stored| / |stored| of the vectors that are quantised; 0 in other modes.
  double quantiser_relative_error = 0, quantiser_worst_relative_error = 0;
  // Faithful selection (codes) against the exact oracle's: share of the same pools, and of the
  // selected logits' sum (exact logits of both).
  double pool_recall = 1, value_recall = 1;
  // Pools against tokens: of the index_topk tokens that score highest one by one (unpooled keys,
  // no quantisation), the share in the exact pooled selection or the tail.
  double token_recall = 1;
  std::int64_t rows = 0;
};
// Cost: rows x tokens x heads x head_dim.
Loss measure_loss(const IndexerInputs& inputs);

}  // namespace indexpool::reference
