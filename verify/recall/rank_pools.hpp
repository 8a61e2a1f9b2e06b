// The scores by which each policy ranks pools. Internal to the folder.
#pragma once

#include <vector>

#include "indexpool/reference/training/objective.hpp"
#include "indexpool/verify/recall/compare.hpp"
#include "indexpool/verify/recall/kept.hpp"

namespace indexpool::verify::recall {

// One held-out sequence after the other: [Q, pools].
struct Ranking {
  std::vector<std::vector<double>> scores;
  double loss_before = 0, loss_after = 0;
};
// Pooled keys asked by the unpooled queries; trained first where `form` says so.
Ranking rank_by_pooling(const DataSet& data, const CompareOptions& options, const Policy& policy,
                        Form form, std::int64_t ratio);
// The largest of a pool's token scores.
std::vector<double> largest_scores(const Unpooled& of, std::int64_t ratio);
// How many of the query's best tokens a pool holds.
std::vector<double> best_counts(const Unpooled& of, std::int64_t ratio);

}  // namespace indexpool::verify::recall
