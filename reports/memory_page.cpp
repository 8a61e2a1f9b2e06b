#include "indexpool/reports/memory_page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/plots.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 720, left = 210, right = 90, row = 20, bar = 13, top = 22;

struct Scale {
  double most;
  double at(double bytes) const { return left + (width - left - right) * bytes / most; }
};

// Colour of a kind: the order in which kinds come up.
std::size_t series_of(const std::vector<WaterfallStep>& steps, const std::string& kind) {
  std::vector<std::string> seen;
  for (const WaterfallStep& step : steps) {
    const auto found = std::find(seen.begin(), seen.end(), step.kind);
    if (found == seen.end()) seen.push_back(step.kind);
    if (step.kind == kind) {
      return static_cast<std::size_t>(std::find(seen.begin(), seen.end(), kind) - seen.begin()) %
                 6 +
             1;
    }
  }
  return 1;
}

std::string bar_markup(const std::string& name, const std::string& title, double from, double to,
                       double value, double y, std::size_t series, const Scale& scale) {
  const double x = scale.at(from), end = scale.at(to);
  return fmt::format(
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
      "<rect class=\"series s{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
      "<title>{}</title></rect>"
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      left - 8, y + bar - 2, escape_xml(name), series, x, y, std::max(1.0, end - x), bar,
      escape_xml(title), end + 5, y + bar - 2, format_bytes(value));
}

}  // namespace

std::string waterfall_plot(const std::vector<WaterfallStep>& steps, double usable) {
  if (steps.empty()) return "";
  double total = 0;
  for (const WaterfallStep& step : steps) total += step.bytes;
  const Scale scale{std::max({total, usable, 1.0})};
  const double height = top + row * static_cast<double>(steps.size() + 1) + 8;
  std::string out = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"memory of one "
      "GPU, term by term\">\n",
      width, height);
  double at = 0, y = top;
  for (const WaterfallStep& step : steps) {
    out += bar_markup(step.name, fmt::format("{}, {}: {:.0f} B", step.kind, step.name, step.bytes),
                      at, at + step.bytes, step.bytes, y, series_of(steps, step.kind), scale);
    at += step.bytes;
    y += row;
  }
  out += bar_markup("one GPU", fmt::format("all terms: {:.0f} B", total), 0, total, total, y, 6,
                    scale);
  const double limit = scale.at(usable);
  return out +
         fmt::format(
             "<line class=\"bound\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
             "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">usable {4}"
             "</text>\n</svg>\n",
             limit, top - 4, height - 4, top - 8, format_bytes(usable));
}

std::string memory_html(const MemoryPage& page) {
  std::string out = html_start(page.title) + fmt::format("<h1>{}</h1>\n", escape_xml(page.title));
  std::string falls;
  for (const MemoryPage::Waterfall& fall : page.waterfalls) {
    falls += fmt::format("<figure><h3>{}</h3>\n{}</figure>\n", escape_xml(fall.heading),
                         waterfall_plot(fall.steps, fall.usable));
  }
  out += section("waterfall", "What one GPU holds", falls);
  const std::string curves = curve_plot(page.curves);
  if (!curves.empty()) {
    out += section("context", "How it grows with the context", "<figure>" + curves + "</figure>\n");
  }
  for (const std::string& further : page.sections) out += further;
  out += section("terms", "Every term", html_table(page.terms));
  out += section("repeat", "How to repeat it",
                 fmt::format("<pre><code>{}</code></pre>\n", escape_xml(page.command)));
  return out + std::string(html_end);
}

}  // namespace indexpool::reports
