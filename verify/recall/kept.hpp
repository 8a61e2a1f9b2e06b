// What a selection of tokens keeps of what the unpooled scores ask for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/verify/recall/data.hpp"

namespace indexpool::verify::recall {

// Of one sequence, token by token.
struct Unpooled {
  std::int64_t tokens = 0;
  std::vector<double> scores;                   // [Q, N]
  std::vector<double> attention;                // [Q, N] softmax(q . k / sqrt(D)), mean over heads
  std::vector<std::vector<std::int64_t>> best;  // of each query the k that score highest, ascending
  // Queries whose k-th and next score are equal: there the lower index decides.
  std::int64_t ties = 0;
};
Unpooled unpooled(const DataSet& data, const reference::training::Sequence& sequence,
                  std::int64_t k);

struct Kept {
  double recall = 0;  // share of the best that was selected
  double f1 = 0;      // harmonic mean of recall and precision; the two agree where k were selected
  double mass = 0;    // attention on the selected
};
// `selected` ascending, distinct.
Kept kept(const Unpooled& of, std::int64_t query, std::span<const std::int64_t> selected);

// The tokens of pools, `ratio` each.
std::vector<std::int64_t> tokens_of(std::span<const std::int64_t> pools, std::int64_t ratio);

}  // namespace indexpool::verify::recall
