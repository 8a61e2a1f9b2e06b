// A case's recorded answers against the reference's enclosures, step by step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// One step. Each is judged from the recorded answers of the step before where the case has them, so
// that a fault shows where it happens.
struct Agreement {
  std::string step;           // "queries", "pooled", "pool_scales", "logits", "selection", ...
  std::int64_t compared = 0;  // elements, or rows of a selection
  std::int64_t outside = 0;   // of them outside the enclosure, or rows not certified
  std::int64_t unequal = 0;   // of them not the reference's own value (its whole chain from inputs)
  double utilisation = 0;     // worst |answer - value| over the enclosure's reach on that side
  std::int64_t decidable = 0;  // selection: rows whose set the enclosures decide
  std::string first_fault;     // coordinates, answer and enclosure of the first one outside
};

// Steps the case has recorded answers for, in pipeline order.
std::vector<Agreement> compare_expected(const Case& test_case,
                                        Precision precision = Precision::binary64);

// Is a row of selected tokens (padded positions, -1 unused) a correct answer, given each visible
// pool's logit as an interval? Empty, or what is wrong: structure (range, duplicates, causality,
// whole pools, tail, count) or a pool left out that surely beats one taken.
std::string selection_fault(std::span<const std::int32_t> row, std::span<const double> low,
                            std::span<const double> high, std::int64_t position,
                            std::int64_t first_key, const IndexerConfig& config);
// Do the intervals allow one set of k pools only?
bool selection_decidable(std::span<const double> low, std::span<const double> high, std::int64_t k);

}  // namespace indexpool::reference
