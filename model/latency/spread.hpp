// Statistics of errors. Internal to the layer.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/latency/cross_validation.hpp"
#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/latency/score.hpp"

namespace indexpool {

// The value that `share` of `sorted` do not exceed; of few values the more cautious one, as in
// split conformal prediction: rank ceil(share (n + 1)).
double upper_quantile(const std::vector<double>& sorted, double share);

// Between which factors of the prediction 90 % of unseen rows lie, over all of them and by kind
// (see spread_keys). A kind of fewer than 38 families can't tell by itself: it takes the wider of
// its own extremes and of all rows' spread.
std::map<std::string, Spread> spreads(std::span<const UnseenRow> rows);

std::vector<ErrorSummary> summarise(const std::vector<ScoredRow>& rows);

}  // namespace indexpool
