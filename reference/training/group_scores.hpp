// One score of a group from the scores of its pools, where a policy keeps several of them. Internal
// to the layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace indexpool::reference::training {

struct GroupScores {
  std::vector<double> scores;  // [Q, G]
  std::vector<double> shares;  // [Q, G, outputs] of a pool in its group: they add up to 1
};

// S = log(sum over the group's pools of exp(factor s)) / factor, from s [Q, G, outputs]. The
// softmax of factor S over groups is then what the softmax of factor s over all pools gives each
// group, and a single pool's score stays as it is, to the bit.
inline GroupScores group_scores(const std::vector<double>& pool_scores, std::size_t outputs,
                                double factor) {
  GroupScores of;
  of.shares.resize(pool_scores.size());
  for (std::size_t first = 0; first < pool_scores.size(); first += outputs) {
    const double* s = pool_scores.data() + first;
    double* share = of.shares.data() + first;
    const double largest = *std::max_element(s, s + outputs);
    double sum = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
      share[o] = std::exp(factor * (s[o] - largest));
      sum += share[o];
    }
    for (std::size_t o = 0; o < outputs; ++o) share[o] /= sum;
    of.scores.push_back(largest + std::log(sum) / factor);
  }
  return of;
}

}  // namespace indexpool::reference::training
