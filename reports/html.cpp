#include <variant>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/status_style.hpp"

namespace indexpool::reports {
namespace {

// A section is a row; a new one is a new function and a word here.
constexpr std::string (*sections[])(const ReportInput&) = {
    verdict_section,     comparison_section,  forecast_section,  repeat_section,
    problems_section,    utilisation_section, curves_section,    roofline_section,
    pipeline_section,    hierarchy_section,   attached_sections, records_section,
    environment_section, glossary_section};

// A status gets its badge; a name that was cut is whole in the tooltip.
std::string cell_markup(const Cell& cell) {
  if (cell.status) return status_badge(*cell.status);
  if (cell.text.empty()) return "<span class=\"absent\">–</span>";
  const auto* whole = std::get_if<std::string>(&cell.value);
  if (whole == nullptr || *whole == cell.text) return escape_xml(cell.text);
  return fmt::format("<span title=\"{}\">{}</span>", escape_xml(*whole), escape_xml(cell.text));
}

}  // namespace

std::string status_badge(Status status) {
  const std::string_view name = to_string(status);
  return fmt::format("<span class=\"badge {}\">{} {}</span>", name, style(status).symbol, name);
}

std::string html_table(const Table& table) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.right ? " class=\"number\"" : "",
                       escape_xml(column.heading));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += fmt::format("<td{}>{}</td>", table.columns[c].right ? " class=\"number\"" : "",
                         cell_markup(row[c]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

std::string section(std::string_view id, std::string_view heading, std::string_view body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, heading, body);
}

std::string html_start(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
      escape_xml(title), style_sheet());
}

std::string html(const ReportInput& input) {
  std::string out = html_start(input.title);
  for (const auto& part : sections) out += part(input);
  return out + std::string(html_end);
}

}  // namespace indexpool::reports
