#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/reports/axis.hpp"
#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/plots.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 640, height = 400, left = 68, right = 160, top = 16, bottom = 44;

struct Point {
  double tokens, value, low, high;
};

// The points that a logarithmic plot can show; an interval the curve lacks is the value itself.
std::vector<Point> points_of(const Curve& curve) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < std::min(curve.tokens.size(), curve.value.size()); ++i) {
    const double value = curve.value[i], tokens = curve.tokens[i];
    if (!(tokens > 0 && value > 0) || !std::isfinite(tokens) || !std::isfinite(value)) continue;
    const auto inside = [&](const std::vector<double>& end) {
      return i < end.size() && end[i] > 0 && std::isfinite(end[i]) ? end[i] : value;
    };
    points.push_back({tokens, value, inside(curve.low), inside(curve.high)});
  }
  return points;
}

std::string format_value(double value, const std::string& unit) {
  if (unit == "bytes") return format_bytes(value);
  if (unit == "seconds") return format_seconds(value);
  return fmt::format("{:.3g} {}", value, unit);
}

struct Axes {
  LogAxis x, y;
};

Axes axes_of(const std::vector<std::vector<Point>>& all) {
  double x_low = std::numeric_limits<double>::infinity(), x_high = 0;
  double y_low = x_low, y_high = 0;
  for (const auto& points : all) {
    for (const Point& point : points) {
      x_low = std::min(x_low, point.tokens);
      x_high = std::max(x_high, point.tokens);
      y_low = std::min(y_low, point.low);
      y_high = std::max(y_high, point.high);
    }
  }
  if (x_high <= x_low) x_high = x_low * 2;
  return {{x_low, x_high, left, width - right}, decade_axis(y_low, y_high, height - bottom, top)};
}

std::string frame(const Axes& axes, const std::string& unit) {
  std::string out;
  for (const double tick : decades(axes.y)) {
    const double y = axes.y.at(tick);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        axes.x.from, y, axes.x.to, y, axes.x.from - 8, y + 4, escape_xml(format_value(tick, unit)));
  }
  std::vector<double> ticks = token_ticks(axes.x);
  ticks.push_back(axes.x.high);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = axes.x.at(ticks[i]);
    // The last label wins where it would touch the one before it.
    const bool covered = i + 1 < ticks.size() && axes.x.to - x < 26;
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        x, axes.y.to, axes.y.from, axes.y.from + 18,
        covered ? "" : format_tokens(std::llround(ticks[i])));
  }
  return out + fmt::format(
                   "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">"
                   "tokens of context</text>\n",
                   (axes.x.from + axes.x.to) / 2, height - 6);
}

std::string band(const std::vector<Point>& points, const Axes& axes, std::size_t series) {
  std::string path;
  for (const Point& p : points)
    path += fmt::format("{:.1f},{:.1f} ", axes.x.at(p.tokens), axes.y.at(p.high));
  for (auto p = points.rbegin(); p != points.rend(); ++p) {
    path += fmt::format("{:.1f},{:.1f} ", axes.x.at(p->tokens), axes.y.at(p->low));
  }
  path.pop_back();
  return fmt::format("<polygon class=\"band s{}\" points=\"{}\"/>\n", series % 6 + 1, path);
}

std::string line_and_marks(const Curve& curve, const std::vector<Point>& points, const Axes& axes,
                           std::size_t series) {
  std::string path, marks;
  for (const Point& p : points) {
    const double x = axes.x.at(p.tokens), y = axes.y.at(p.value);
    path += fmt::format("{:.1f},{:.1f} ", x, y);
    std::string title =
        fmt::format("{} at {} tokens: {}", curve.name, format_tokens(std::llround(p.tokens)),
                    format_value(p.value, curve.unit));
    if (p.low != p.high) {
      title += fmt::format(" ({} to {})", format_value(p.low, curve.unit),
                           format_value(p.high, curve.unit));
    }
    marks += fmt::format(
        "<circle class=\"dot s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}</title>"
        "</circle>\n",
        series % 6 + 1, x, y, escape_xml(title));
  }
  path.pop_back();
  return fmt::format("<polyline class=\"line s{}\" points=\"{}\"/>\n", series % 6 + 1, path) +
         marks;
}

}  // namespace

std::string curve_plot(const std::vector<Curve>& curves) {
  std::vector<const Curve*> shown;
  std::vector<std::vector<Point>> all;
  for (const Curve& curve : curves) {
    std::vector<Point> points = points_of(curve);
    if (points.size() < 2) continue;
    shown.push_back(&curve);
    all.push_back(std::move(points));
  }
  if (shown.empty()) return "";
  const Axes axes = axes_of(all);
  std::string out = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{} against "
      "tokens of context\">\n",
      width, height, escape_xml(shown.front()->plot));
  out += frame(axes, shown.front()->unit);
  std::vector<double> wish;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += band(all[i], axes, i);
    wish.push_back(axes.y.at(all[i].back().value));
  }
  const std::vector<double> place = spread(wish, 15, top, height - bottom);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += line_and_marks(*shown[i], all[i], axes, i);
    out +=
        fmt::format("<text class=\"series s{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", i % 6 + 1,
                    axes.x.to + 10, place[i] + 4, escape_xml(shortened(shown[i]->name, 26)));
  }
  return out + "</svg>\n";
}

std::string interval_bar(const Prediction& prediction, double axis_low, double axis_high) {
  const LogAxis axis = decade_axis(axis_low, axis_high, 6, 174);
  std::string out =
      "<svg class=\"bar\" viewBox=\"0 0 180 18\" role=\"img\" aria-label=\"predicted time with its "
      "interval\">";
  for (const double tick : decades(axis)) {
    out += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"2\" x2=\"{0:.1f}\" y2=\"16\"/>",
                       axis.at(tick));
  }
  const double low = axis.at(prediction.low.value), high = axis.at(prediction.high.value);
  return out + fmt::format(
                   "<rect class=\"band s1\" x=\"{:.1f}\" y=\"5\" width=\"{:.1f}\" height=\"8\" "
                   "rx=\"3\"/><circle class=\"dot s1\" cx=\"{:.1f}\" cy=\"9\" r=\"4\"><title>{} "
                   "({})</title></circle></svg>",
                   low, std::max(high - low, 1.0), axis.at(prediction.time.value),
                   format_seconds(prediction.time.value),
                   format_interval(prediction.low, prediction.high));
}

}  // namespace indexpool::reports
