#include "indexpool/reports/plot_scatter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/axis.hpp"
#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 620, height = 470, left = 68, right = 150, top = 14, bottom = 46;
constexpr double near_share = 0.1;  // the band around the diagonal

bool positive(double value) { return value > 0 && std::isfinite(value); }

std::vector<ScatterPoint> drawable(const std::vector<ScatterPoint>& points) {
  std::vector<ScatterPoint> out;
  for (const ScatterPoint& point : points) {
    if (positive(point.measured) && positive(point.predicted)) out.push_back(point);
  }
  // Held-out marks lie on top.
  std::stable_partition(out.begin(), out.end(),
                        [](const ScatterPoint& point) { return !point.held_out; });
  return out;
}

// In the order of their names, so that a colour does not depend on the order of rows.
std::vector<std::string> series_of(const std::vector<ScatterPoint>& points) {
  std::set<std::string> names;
  for (const ScatterPoint& point : points) names.insert(point.series);
  return {names.begin(), names.end()};
}

std::size_t colour_of(const std::vector<std::string>& series, const std::string& name) {
  const auto at = std::lower_bound(series.begin(), series.end(), name);
  return static_cast<std::size_t>(at - series.begin()) % 6 + 1;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string open_svg(const char* label) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", width,
      height, label);
}

std::string vertical_ticks(const LogAxis& x) {
  std::string out;
  for (const double tick : decades(x)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        x.at(tick), top, height - bottom, height - bottom + 17, format_seconds(tick));
  }
  return out + fmt::format(
                   "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">measured "
                   "time</text>\n",
                   (x.from + x.to) / 2, height - 8);
}

std::string horizontal_tick(const LogAxis& y, double at, const std::string& label) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
      left, y.at(at), width - right, y.at(at), left - 8, y.at(at) + 4, label);
}

std::string y_caption(const char* text) {
  const double y = (top + height - bottom) / 2;
  return fmt::format(
      "<text class=\"tick\" x=\"12\" y=\"{0:.1f}\" text-anchor=\"middle\" "
      "transform=\"rotate(-90 12 {0:.1f})\">{1}</text>\n",
      y, text);
}

std::string legend(const std::vector<std::string>& series) {
  const double x = width - right + 20;
  double y = top + 10;
  std::string out;
  for (const std::string& name : series) {
    out += fmt::format(
        "<circle class=\"dot s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        colour_of(series, name), x, y - 4, x + 10, y, escape_xml(shortened(name, 18)));
    y += 18;
  }
  y += 8;
  return out + fmt::format(
                   "<circle class=\"key\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"4\"/>"
                   "<text class=\"tick\" x=\"{2:.1f}\" y=\"{3:.1f}\">held out</text>\n"
                   "<circle class=\"key hollow\" cx=\"{0:.1f}\" cy=\"{4:.1f}\" r=\"3.5\"/>"
                   "<text class=\"tick\" x=\"{2:.1f}\" y=\"{5:.1f}\">a fit saw it</text>\n"
                   "<rect class=\"near\" x=\"{6:.1f}\" y=\"{7:.1f}\" width=\"10\" height=\"10\"/>"
                   "<text class=\"tick\" x=\"{2:.1f}\" y=\"{8:.1f}\">within 10 %</text>\n",
                   x, y - 4, x + 10, y, y + 14, y + 18, x - 5, y + 27, y + 36);
}

// `y_of` says what of a point is drawn upwards.
template <class YOf>
std::string marks(const std::vector<ScatterPoint>& points, const std::vector<std::string>& series,
                  const LogAxis& x, const LogAxis& y, YOf y_of) {
  std::string out;
  std::set<std::tuple<long, long, std::size_t, bool>> drawn;
  for (const ScatterPoint& point : points) {
    const double at_x = x.at(point.measured), at_y = y.at(y_of(point));
    const std::size_t colour = colour_of(series, point.series);
    if (!drawn.insert({std::lround(at_x), std::lround(at_y), colour, point.held_out}).second) {
      continue;
    }
    out += fmt::format(
        "<circle class=\"{} s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" data-measured=\"{:.6g}\" "
        "data-predicted=\"{:.6g}\"><title>{}</title></circle>\n",
        point.held_out ? "dot" : "ring", colour, at_x, at_y, point.held_out ? "3.2" : "2.2",
        point.measured, point.predicted, escape_xml(point.title));
  }
  return out;
}

std::string diagonal(const LogAxis& x, const LogAxis& y) {
  const double above = 1 + near_share, below = 1 - near_share;
  std::string corners;
  const auto corner = [&](double measured, double predicted) {
    corners +=
        fmt::format("{}{:.1f},{:.1f}", corners.empty() ? "" : " ", x.at(measured), y.at(predicted));
  };
  corner(x.low, y.low);
  corner(x.low, y.low * above);
  corner(x.high / above, y.high);
  corner(x.high, y.high);
  corner(x.high, y.high * below);
  corner(x.low / below, y.low);
  return fmt::format(
      "<polygon class=\"near\" points=\"{}\"/>\n<line class=\"ideal\" x1=\"{:.1f}\" y1=\"{:.1f}\" "
      "x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
      corners, x.from, y.from, x.to, y.to);
}

// Predicted over measured as an error: "+25 %".
std::string error_text(double ratio) {
  if (ratio == 1) return "0";
  return fmt::format("{}{:.0f} %", ratio > 1 ? "+" : "−", std::abs(ratio - 1) * 100);
}

double farthest(const std::vector<ScatterPoint>& points) {
  double far = 1.3;
  for (const ScatterPoint& point : points) {
    far = std::max(far, std::exp(std::abs(std::log(point.predicted / point.measured))));
  }
  return std::min(far, 4.0) * 1.05;
}

}  // namespace

std::string scatter_plot(const std::vector<ScatterPoint>& all) {
  const std::vector<ScatterPoint> points = drawable(all);
  if (points.empty()) return "";
  Range range;
  for (const ScatterPoint& point : points) {
    range.take(point.measured);
    range.take(point.predicted);
  }
  const LogAxis x = decade_axis(range.low, range.high, left, width - right);
  const LogAxis y{x.low, x.high, height - bottom, top};
  const std::vector<std::string> series = series_of(points);
  std::string out = open_svg("predicted against measured time") + diagonal(x, y);
  out += vertical_ticks(x) + y_caption("predicted time");
  for (const double tick : decades(y)) out += horizontal_tick(y, tick, format_seconds(tick));
  out += marks(points, series, x, y, [](const ScatterPoint& point) { return point.predicted; });
  return out + legend(series) + "</svg>\n";
}

std::string ratio_plot(const std::vector<ScatterPoint>& all) {
  const std::vector<ScatterPoint> points = drawable(all);
  if (points.empty()) return "";
  Range range;
  for (const ScatterPoint& point : points) range.take(point.measured);
  const LogAxis x = decade_axis(range.low, range.high, left, width - right);
  const double far = farthest(points);
  const LogAxis y{1 / far, far, height - bottom, top};
  const std::vector<std::string> series = series_of(points);
  std::string out = open_svg("error of the prediction against measured time");
  out += fmt::format(
      "<rect class=\"near\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
      x.from, y.at(1 + near_share), x.to - x.from, y.at(1 - near_share) - y.at(1 + near_share));
  out += vertical_ticks(x) + y_caption("error of the prediction");
  for (const double tick : {0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0}) {
    if (tick >= y.low && tick <= y.high) out += horizontal_tick(y, tick, error_text(tick));
  }
  out += fmt::format(
      "<line class=\"ideal\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x.from,
      y.at(1), x.to, y.at(1));
  out += marks(points, series, x, y,
               [](const ScatterPoint& point) { return point.predicted / point.measured; });
  return out + legend(series) + "</svg>\n";
}

}  // namespace indexpool::reports
