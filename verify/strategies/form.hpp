// The published form whose pools a strategy manages: weights and pooling as the reference trains
// them (reference/training/gradients.hpp), for any number of equally long groups at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/verify/strategies/settings.hpp"
#include "indexpool/verify/strategies/staleness.hpp"
#include "indexpool/verify/strategies/stream.hpp"

namespace indexpool::verify::strategies {

// plain    weights falling by equal steps, 0.4 0.3 0.2 0.1 of four (article A's first stage)
// gated    W points from the mean of other keys to the mean of salient ones, b is half way (the
//          linear discriminant of sequences that no strategy is judged on); h_t has no part
// additive, tfidf   with the published or chosen mixtures of model/pooling.hpp. Their query is that
//          of the step when `by_step`, else the mean query of those other sequences; distances are
//          from the end of the context or of the group, likewise.
struct Form {
  std::string policy = "gated";
  bool by_step = false;  // weights that change with every step

  std::vector<double> gate_weight, mean_query;  // [D]
  double gate_bias = 0;
  std::int64_t launches_of_weights() const;  // plain 0, gated 2, others 1
  WeightSlope slope() const;
};
// For streams of these options: learnt from sequences far away from theirs. ConfigError for
// policies other than the four above.
Form make_form(const std::string& policy, bool by_step, const StreamOptions& options);

// Groups of `vectors` tokens each. `step` -1: before the first decode step.
struct Groups {
  const Stream* stream = nullptr;
  std::int64_t layer = 0, step = -1, tokens = 0, vectors = 4;
  std::vector<Segment> segments;
};
// [G, m] as stored, before any division.
std::vector<double> weights_of(const Form& form, const Groups& groups);
// [G, D] from stored weights; divided by their sum where the policy divides.
std::vector<double> pools_of(const Form& form, const Groups& groups,
                             const std::vector<double>& weights);
// What each vector effectively weighs in the pool: over the sum where the policy divides.
std::vector<double> shares_of(const Form& form, std::span<const double> weights);

}  // namespace indexpool::verify::strategies
