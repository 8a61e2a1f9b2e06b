// Lines over linear axes as static SVG: no script, every mark explains itself in a <title>.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace indexpool::reports {

struct LineSeries {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low, high;  // a band around the line; empty: none
};
struct LinePlot {
  std::string heading, x_label, y_label;
  std::vector<LineSeries> series;
  std::optional<double> y_low = std::nullopt, y_high = std::nullopt;  // else what the values need
};

// Points that are not finite are left out. Empty when no series has two points.
std::string line_plot(const LinePlot& plot);

// Round numbers inside [low, high], about `count` of them: steps of 1, 2 or 5 times a power of ten.
std::vector<double> linear_ticks(double low, double high, int count);

}  // namespace indexpool::reports
