#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include <fmt/format.h>

#include "indexpool/reports/axis.hpp"
#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/roofline.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 1040, height = 520, left = 96, right = 240, top = 18, bottom = 48;

bool drawable(const RooflinePoint& point) {
  for (const double value : {point.flop, point.bytes, point.predicted}) {
    if (!(value > 0) || !std::isfinite(value)) return false;
  }
  return true;
}

double intensity(const RooflinePoint& point) { return point.flop / point.bytes; }

std::string rate_text(double rate, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (rate >= 999.5 && prefix + 1 < std::size(prefixes)) {
    rate /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", rate, prefixes[prefix], unit);
}

struct Axes {
  LogAxis x, y;  // FLOP/B, FLOP/s
};

// Around all points and the ridges, where rising and level ceilings meet.
Axes axes_of(const std::vector<Ceiling>& lines, const std::vector<RooflinePoint>& points) {
  double x_low = std::numeric_limits<double>::infinity(), x_high = 0, y_low = x_low, y_high = 0;
  double memory = 0, compute = 0;
  for (const RooflinePoint& point : points) {
    x_low = std::min(x_low, intensity(point));
    x_high = std::max(x_high, intensity(point));
    for (const double seconds : {point.predicted, point.low, point.high, point.measured}) {
      if (!(seconds > 0) || !std::isfinite(seconds)) continue;
      y_low = std::min(y_low, point.flop / seconds);
      y_high = std::max(y_high, point.flop / seconds);
    }
  }
  for (const Ceiling& line : lines) {
    if (!line.memory) compute = std::max(compute, line.rate);
    if (line.memory && (memory == 0 || line.rate < memory)) memory = line.rate;
  }
  if (memory > 0) x_high = std::max(x_high, 3 * compute / memory);
  y_high = std::max(y_high, compute);
  return {decade_axis(x_low, x_high, left, width - right),
          decade_axis(y_low, y_high * 1.2, height - bottom, top)};
}

std::string frame(const Axes& axes) {
  std::string out;
  for (const double tick : decades(axes.x)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        axes.x.at(tick), axes.y.to, axes.y.from, axes.y.from + 18, tick);
  }
  for (const double tick : decades(axes.y)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>"
        "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        axes.x.from, axes.y.at(tick), axes.x.to, axes.x.from - 8, axes.y.at(tick) + 4,
        rate_text(tick, "FLOP/s"));
  }
  return out + fmt::format(
                   "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">FLOP for "
                   "each byte of HBM</text>\n",
                   (axes.x.from + axes.x.to) / 2, height - 8);
}

// From where it enters the plot to where it meets the highest level line; the name lies along it.
std::string rising(const Ceiling& line, const Axes& axes, double most) {
  const double x1 = std::max(axes.x.low, axes.y.low / line.rate);
  const double x2 = std::min(axes.x.high, std::min(most, axes.y.high) / line.rate);
  if (!(x2 > x1)) return "";
  const double from_x = axes.x.at(x1), from_y = axes.y.at(x1 * line.rate);
  const double to_x = axes.x.at(x2), to_y = axes.y.at(x2 * line.rate);
  const double angle = std::atan2(to_y - from_y, to_x - from_x) * 180 / std::numbers::pi;
  const double at_x = from_x + 0.55 * (to_x - from_x), at_y = from_y + 0.55 * (to_y - from_y) - 6;
  return fmt::format(
      "<line class=\"ceiling\" data-rate=\"{:.6g}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
      "y2=\"{:.1f}\"><title>{}: {}</title></line>"
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
      "transform=\"rotate({:.1f} {:.1f} {:.1f})\">{} {}</text>\n",
      line.rate, from_x, from_y, to_x, to_y, escape_xml(line.name), escape_xml(line.source), at_x,
      at_y, angle, at_x, at_y, escape_xml(line.name), rate_text(line.rate, "B/s"));
}

std::string level(const Ceiling& line, const Axes& axes, double memory, double label_y) {
  const double x1 = memory > 0 ? std::max(axes.x.low, line.rate / memory) : axes.x.low;
  const double y = axes.y.at(line.rate);
  return fmt::format(
      "<line class=\"ceiling\" data-rate=\"{:.6g}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
      "y2=\"{:.1f}\"><title>{}: {}</title></line>"
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{} {}</text>\n",
      line.rate, axes.x.at(x1), y, axes.x.to, y, escape_xml(line.name), escape_xml(line.source),
      axes.x.to + 8, label_y + 4, escape_xml(shortened(line.name, 28)),
      rate_text(line.rate, "FLOP/s"));
}

std::string ceiling_lines(const std::vector<Ceiling>& lines, const Axes& axes) {
  double memory = 0, compute = 0;
  std::vector<double> wish;
  for (const Ceiling& line : lines) {
    if (line.memory) {
      memory = std::max(memory, line.rate);
    } else {
      compute = std::max(compute, line.rate);
      wish.push_back(axes.y.at(line.rate));
    }
  }
  const std::vector<double> place = spread(wish, 16, top, height - bottom);
  std::string out;
  std::size_t at = 0;
  for (const Ceiling& line : lines) {
    out += line.memory ? rising(line, axes, compute > 0 ? compute : axes.y.high)
                       : level(line, axes, memory, place[at++]);
  }
  return out;
}

std::string mark(const RooflinePoint& point, double seconds, const char* kind, std::size_t colour,
                 const Axes& axes) {
  const double rate = point.flop / seconds;
  return fmt::format(
      "<circle class=\"{} s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" data-flop=\"{:.6g}\" "
      "data-bytes=\"{:.6g}\" data-seconds=\"{:.6g}\"><title>{}</title></circle>\n",
      kind, colour, axes.x.at(intensity(point)), axes.y.at(rate), point.flop, point.bytes, seconds,
      escape_xml(fmt::format("{} ({}) {}: {} for {} of HBM in {} is {}", point.kernel, point.what,
                             std::string_view(kind) == "dot" ? "predicted" : "measured",
                             rate_text(point.flop, "FLOP"), format_bytes(point.bytes),
                             format_seconds(seconds), rate_text(rate, "FLOP/s"))));
}

std::string marks(const RooflinePoint& point, std::size_t colour, const Axes& axes) {
  std::string out;
  const double x = axes.x.at(intensity(point));
  if (point.low > 0 && point.high > point.low && std::isfinite(point.high)) {
    out += fmt::format(
        "<line class=\"line s{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        colour, x, axes.y.at(point.flop / point.low), x, axes.y.at(point.flop / point.high));
  }
  out += mark(point, point.predicted, "dot", colour, axes);
  if (point.measured > 0 && std::isfinite(point.measured)) {
    out += mark(point, point.measured, "ring wide", colour, axes);
  }
  return out;
}

// One name for each kernel, at its point of most bytes.
std::string labels(const std::vector<RooflinePoint>& points,
                   const std::map<std::string, std::size_t>& colours, const Axes& axes) {
  std::vector<const RooflinePoint*> named;
  std::vector<double> wish;
  for (const auto& each : colours) {
    const RooflinePoint* most = nullptr;
    for (const RooflinePoint& point : points) {
      if (point.kernel == each.first && (most == nullptr || point.bytes > most->bytes)) {
        most = &point;
      }
    }
    named.push_back(most);
    wish.push_back(axes.y.at(most->flop / most->predicted));
  }
  const std::vector<double> place = spread(wish, 15, top, height - bottom);
  std::string out;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const RooflinePoint& point = *named[i];
    out += fmt::format("<text class=\"series s{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       colours.at(point.kernel), axes.x.at(intensity(point)) + 10, place[i] + 4,
                       escape_xml(fmt::format("{} {}", shortened(point.kernel, 24),
                                              rate_text(point.flop / point.predicted, "FLOP/s"))));
  }
  return out;
}

// Names beside marks, for plots of many points; where they lie, few kernels do.
std::string legend(const std::map<std::string, std::size_t>& colours, const Axes& axes) {
  const double x = axes.x.to - 200;
  double y = axes.y.from - 12 - 18 * static_cast<double>(colours.size() - 1);
  std::string out;
  for (const auto& [kernel, colour] : colours) {
    out += fmt::format(
        "<circle class=\"series s{0}\" cx=\"{1:.1f}\" cy=\"{2:.1f}\" r=\"5\"/>"
        "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
        colour, x, y - 4, x + 10, y, escape_xml(shortened(kernel, 28)));
    y += 18;
  }
  return out;
}

}  // namespace

std::string roofline_plot(const std::vector<Ceiling>& lines,
                          const std::vector<RooflinePoint>& all) {
  std::vector<RooflinePoint> points;
  std::map<std::string, std::size_t> colours;
  for (const RooflinePoint& point : all) {
    if (!drawable(point)) continue;
    points.push_back(point);
    colours.emplace(point.kernel, colours.size() % 6 + 1);
  }
  if (points.empty()) return "";
  const Axes axes = axes_of(lines, points);
  std::string out = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"kernels on the "
      "roofline\">\n",
      width, height);
  out += frame(axes) + ceiling_lines(lines, axes);
  for (const RooflinePoint& point : points) out += marks(point, colours.at(point.kernel), axes);
  const bool many = points.size() > 2 * colours.size();
  return out + (many ? legend(colours, axes) : labels(points, colours, axes)) + "</svg>\n";
}

}  // namespace indexpool::reports
