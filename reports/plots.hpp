// Plots as static SVG: no script, every mark explains itself in a <title>, colours from the page's
// style sheet (html_style.cpp) so that light, dark and print need no second picture.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::reports {

// Worst error over bound of every check, one line per operation and check, the bound at 1. Marks
// that fall on the same pixel are drawn once. Empty without checks.
std::string utilisation_plot(const std::vector<Record>& records);

// The curves of one plot against tokens, with their intervals as bands. Empty when no curve has two
// positive points.
std::string curve_plot(const std::vector<Curve>& curves);

// A time with its interval on a logarithmic axis from `axis_low` to `axis_high` seconds.
std::string interval_bar(const Prediction& prediction, double axis_low, double axis_high);

}  // namespace indexpool::reports
