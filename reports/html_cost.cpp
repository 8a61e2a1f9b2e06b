// The sections about cost: the roofline, the memory hierarchy, and tables of other commands.
#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/hierarchy.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/roofline.hpp"

namespace indexpool::reports {
namespace {

// Graphviz writes a whole XML document; inside HTML only its <svg> element counts, and the name
// spaces are implied.
std::string inline_svg(std::string svg) {
  const std::size_t start = svg.find("<svg");
  if (start == std::string::npos) return "";
  svg.erase(0, start);
  const std::size_t end = svg.find('>');
  for (std::size_t at = svg.find(" xmlns"); at < end; at = svg.find(" xmlns")) {
    const std::size_t open = svg.find('"', at), close = svg.find('"', open + 1);
    if (close == std::string::npos) return "";
    svg.erase(at, close + 1 - at);
  }
  return svg;
}

std::string note(std::string_view text) {
  if (text.empty()) return "";
  return fmt::format("<p class=\"note\">{}</p>\n", escape_xml(text));
}

}  // namespace

std::string graph_markup(const std::string& dot, std::string_view name) {
  const std::string picture = inline_svg(svg_from_dot(dot));
  if (picture.empty()) {
    return fmt::format(
        "<p class=\"note\">Graphviz is not installed, so this is the graph's source "
        "({}.dot).</p>\n<pre>{}</pre>\n",
        name, escape_xml(dot));
  }
  return fmt::format("<div class=\"pipeline {}\">\n{}</div>\n", name, picture);
}

std::string roofline_section(const ReportInput& input) {
  if (!input.device) return "";
  const std::vector<RooflinePoint> points = roofline_points(input.records, input.device->name);
  return roofline_markup(*input.device, points);
}

std::string roofline_markup(const DeviceSpec& device, const std::vector<RooflinePoint>& points) {
  const std::string plot = roofline_plot(ceilings(device), points);
  if (plot.empty()) return "";
  return section(
      "roofline", "Kernels on the roofline of the " + escape_xml(device.name),
      note("No kernel can lie above the lines: what the device reaches, not what its data sheet "
           "says. Left of a ridge memory limits, right of it the units that compute. Bars are the "
           "predictions' intervals; hollow marks were measured. The L2's line holds for bytes that "
           "it keeps. " +
           roofline_note(points)) +
          plot);
}

std::string hierarchy_section(const ReportInput& input) {
  const std::string dot = hierarchy_dot(input.records);
  return dot.empty()
             ? ""
             : section("hierarchy", "Through the memory hierarchy", graph_markup(dot, "hierarchy"));
}

std::string attached_sections(const ReportInput& input) {
  std::string out;
  for (const Attachment& each : input.attachments) {
    out += section(escape_xml(each.id), escape_xml(each.heading),
                   note(each.note) + html_table(each.table));
  }
  return out;
}

}  // namespace indexpool::reports
