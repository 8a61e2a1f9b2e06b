#include "indexpool/reports/plot_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/reports/axis.hpp"
#include "indexpool/reports/escape.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 640, height = 340, left = 58, right = 150, top = 14, bottom = 42;

struct Point {
  double x, y, low, high;
};
std::vector<Point> points_of(const LineSeries& series) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    const double x = series.x[i], y = series.y[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const auto end = [&](const std::vector<double>& ends) {
      return i < ends.size() && std::isfinite(ends[i]) ? ends[i] : y;
    };
    points.push_back({x, y, end(series.low), end(series.high)});
  }
  return points;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A plot of equal values still needs a height.
  void open() {
    if (high > low) return;
    const double room = low == 0 ? 1 : std::abs(low) / 10;
    low -= room;
    high += room;
  }
};
struct Axes {
  Range x, y;
  double at_x(double value) const {
    return left + (width - left - right) * (value - x.low) / (x.high - x.low);
  }
  double at_y(double value) const {
    const double clamped = std::clamp(value, y.low, y.high);
    return height - bottom - (height - top - bottom) * (clamped - y.low) / (y.high - y.low);
  }
};

Axes axes_of(const LinePlot& plot, const std::vector<std::vector<Point>>& all) {
  Axes axes;
  for (const auto& points : all) {
    for (const Point& point : points) {
      axes.x.include(point.x);
      axes.y.include(point.low);
      axes.y.include(point.high);
    }
  }
  if (plot.y_low) axes.y.low = *plot.y_low;
  if (plot.y_high) axes.y.high = *plot.y_high;
  axes.x.open();
  axes.y.open();
  return axes;
}

std::string frame(const LinePlot& plot, const Axes& axes) {
  std::string out;
  for (const double tick : linear_ticks(axes.y.low, axes.y.high, 6)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        left, axes.at_y(tick), width - right, axes.at_y(tick), left - 8, axes.at_y(tick) + 4, tick);
  }
  for (const double tick : linear_ticks(axes.x.low, axes.x.high, 8)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        axes.at_x(tick), top, height - bottom, height - bottom + 17, tick);
  }
  return out + fmt::format(
                   "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}"
                   "</text>\n",
                   (left + width - right) / 2, height - 8, escape_xml(plot.x_label));
}

std::string band(const std::vector<Point>& points, const Axes& axes, std::size_t series) {
  std::string path;
  for (const Point& p : points)
    path += fmt::format("{:.1f},{:.1f} ", axes.at_x(p.x), axes.at_y(p.high));
  for (auto p = points.rbegin(); p != points.rend(); ++p)
    path += fmt::format("{:.1f},{:.1f} ", axes.at_x(p->x), axes.at_y(p->low));
  path.pop_back();
  return fmt::format("<polygon class=\"band s{}\" points=\"{}\"/>\n", series % 6 + 1, path);
}

std::string line_and_marks(const LinePlot& plot, const LineSeries& series,
                           const std::vector<Point>& points, const Axes& axes, std::size_t number) {
  std::string path, marks;
  for (const Point& p : points) {
    const double x = axes.at_x(p.x), y = axes.at_y(p.y);
    path += fmt::format("{:.1f},{:.1f} ", x, y);
    std::string title = fmt::format("{}, {} {:g}: {:.4g}", series.name, plot.x_label, p.x, p.y);
    if (p.low != p.high) title += fmt::format(" ({:.4g} to {:.4g})", p.low, p.high);
    marks += fmt::format(
        "<circle class=\"dot s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
        "r=\"3\"><title>{}</title></circle>\n",
        number % 6 + 1, x, y, escape_xml(title));
  }
  path.pop_back();
  return fmt::format("<polyline class=\"line s{}\" points=\"{}\"/>\n", number % 6 + 1, path) +
         marks;
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {};
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= raw) step = factor * power;
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  for (double n = std::ceil((low - slack) / step); n * step <= high + slack; ++n)
    ticks.push_back(n == 0 ? 0 : n * step);
  return ticks;
}

std::string line_plot(const LinePlot& plot) {
  std::vector<const LineSeries*> shown;
  std::vector<std::vector<Point>> all;
  for (const LineSeries& series : plot.series) {
    std::vector<Point> points = points_of(series);
    if (points.size() < 2) continue;
    shown.push_back(&series);
    all.push_back(std::move(points));
  }
  if (shown.empty()) return "";
  const Axes axes = axes_of(plot, all);
  std::string out = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{} against {}"
      "\">\n",
      width, height, escape_xml(plot.y_label), escape_xml(plot.x_label));
  out += frame(plot, axes);
  std::vector<double> wish;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]->low.empty()) out += band(all[i], axes, i);
    wish.push_back(axes.at_y(all[i].back().y));
  }
  const std::vector<double> place = spread(wish, 15, top, height - bottom);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += line_and_marks(plot, *shown[i], all[i], axes, i);
    out +=
        fmt::format("<text class=\"series s{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", i % 6 + 1,
                    width - right + 10, place[i] + 4, escape_xml(shortened(shown[i]->name, 24)));
  }
  return out + "</svg>\n";
}

}  // namespace indexpool::reports
