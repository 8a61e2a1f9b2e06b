// How much of its bound an answer uses.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "indexpool/reference/bounded.hpp"

namespace indexpool::kernels {

// Largest |answer - value| / bound; above 1: outside. NaN is outside unless the element is open.
inline double worst_share(const reference::Bounded& expected, const std::vector<float>& answer) {
  if (answer.size() != expected.value.size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (reference::is_open(expected.low[i], expected.high[i])) continue;
    const double off = answer[i] - expected.value[i];
    if (off == 0) continue;
    if (std::isnan(off)) return HUGE_VAL;
    const double room =
        off > 0 ? expected.high[i] - expected.value[i] : expected.value[i] - expected.low[i];
    worst = std::max(worst, std::abs(off) / room);
  }
  return worst;
}

}  // namespace indexpool::kernels
