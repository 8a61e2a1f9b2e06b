// What a trained pooling keeps, on sequences it has not seen.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/reference/training/objective.hpp"

namespace indexpool::reference::training {

// A mean over queries with a 95 % interval.
struct Interval {
  double value = 0, low = 0, high = 0;
};

struct Evaluation {
  double loss = 0;
  // Of the k tokens that score highest one by one, the share in the k groups whose pools score
  // highest (lower index first among equals).
  Interval recall;
  double mass = 0;     // the unpooled distribution's share of those groups
  double entropy = 0;  // of the weights in a group, over log of their number: 1 for a mean
};
// Entropy: of the weights' shares, negative ones counted as 0; groups with absent vectors left out.
Evaluation evaluate(const Objective& held_out, const Arrays<double>& parameters, std::int64_t k,
                    std::uint64_t seed);

// Percentile bootstrap of the mean of equally long rows, resampled row by row: the queries of a
// sequence share its keys, so the sequence is the unit. 2000 resamples.
Interval bootstrap(const std::vector<std::vector<double>>& rows, std::uint64_t seed);

}  // namespace indexpool::reference::training
