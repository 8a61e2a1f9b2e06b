// Rules by which public projects accept a kernel's output, to be held beside our checks: what would
// they have let through? Each looks at numbers alone, as its project does.
#pragma once

#include <span>
#include <string_view>

#include "indexpool/verify/observation.hpp"

namespace indexpool::verify {

struct Rule {
  std::string_view name, statement, source;
  bool of_selections = false;  // for topk; the others are for every other operation
  // Whether the outputs of a kernel under test pass; `correct` are those of the unmutated kernel
  // for the same inputs.
  bool (*accepts)(const Observation& tested, const Observation& correct);
};
std::span<const Rule> accepted_rules();
inline bool applies(const Rule& rule, Op op) { return rule.of_selections == (op == Op::topk); }

// DeepGEMM: 1 - 2 <x, y> / (<x, x> + <y, y>); 0 when both are zero, NaN when either holds one.
double calc_diff(std::span<const double> found, std::span<const double> expected);
// torch.testing: |found - expected| <= atol + rtol |expected| everywhere; equal infinities are.
bool all_close(std::span<const double> found, std::span<const double> expected, double rtol,
               double atol);
// Largest |found - expected|, infinite when a difference is NaN.
double largest_error(std::span<const double> found, std::span<const double> expected);
// CUTLASS: |a - b| < epsilon (|a| + |b|), or epsilon times the smallest normal where one is zero
// or both are small.
bool relatively_equal(std::span<const double> found, std::span<const double> expected,
                      double epsilon);
// FlashInfer: the share of the expected indices that were found, over all rows of `width` columns;
// -1 is no index. 1 when none are expected.
double index_overlap(std::span<const double> found, std::span<const double> expected,
                     std::int64_t width);

}  // namespace indexpool::verify
