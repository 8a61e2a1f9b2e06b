// A logarithmic axis: values to pixels, and where its ticks are.
#pragma once

#include <vector>

namespace indexpool::reports {

struct LogAxis {
  double low = 1, high = 10;  // values at the ends, 0 < low < high
  double from = 0, to = 1;    // pixels at the ends; from > to for an upward axis

  // Values outside [low, high] are clamped to the ends, so that a mark never leaves the plot.
  double at(double value) const;
  bool operator==(const LogAxis&) const = default;
};

std::vector<double> decades(const LogAxis& axis);      // powers of ten inside the axis
std::vector<double> token_ticks(const LogAxis& axis);  // 1K, 4K, 16K, ... inside the axis
// Whole powers of ten around [low, high]; a decade wide when the values are equal.
LogAxis decade_axis(double low, double high, double from, double to);

// Moves label positions apart until neighbours are `gap` pixels away, in the order given by their
// wish, inside [low, high]. Returns positions in the input's order.
std::vector<double> spread(const std::vector<double>& wish, double gap, double low, double high);

}  // namespace indexpool::reports
