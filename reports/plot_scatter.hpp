// Predicted against measured times. Static SVG as in plots.hpp; every mark also carries its numbers
// as data-measured and data-predicted, in seconds.
#pragma once

#include <string>
#include <vector>

namespace indexpool::reports {

struct ScatterPoint {
  double measured = 0, predicted = 0;  // seconds
  std::string series;                  // marks of one share a colour
  bool held_out = false;               // filled; a row that a fit saw is hollow
  std::string title;
};

// Both axes logarithmic, with the diagonal and what lies within 10 % of the measured time. Marks
// that fall on the same pixel are drawn once. Empty when no point has two positive, finite times.
std::string scatter_plot(const std::vector<ScatterPoint>& points);

// Predicted over measured, against the measured time: what the diagonal hides. Marks beyond the
// axis stand at its end.
std::string ratio_plot(const std::vector<ScatterPoint>& points);

}  // namespace indexpool::reports
