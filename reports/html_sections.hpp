// The parts of report.html, in the order a reader meets them. Each returns its markup, or nothing
// when the records have nothing to say about it. The markup is also well-formed XML.
#pragma once

#include <string>
#include <string_view>

#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

// The first screen: did it pass, what was compared, what would it take, how to repeat it.
std::string verdict_section(const ReportInput& input);
std::string comparison_section(const ReportInput& input);
std::string forecast_section(const ReportInput& input);
std::string repeat_section(const ReportInput& input);

// Below it.
std::string problems_section(const ReportInput& input);
std::string utilisation_section(const ReportInput& input);
std::string curves_section(const ReportInput& input);
std::string roofline_section(const ReportInput& input);
std::string pipeline_section(const ReportInput& input);
std::string hierarchy_section(const ReportInput& input);
std::string attached_sections(const ReportInput& input);
std::string records_section(const ReportInput& input);
std::string environment_section(const ReportInput& input);
std::string glossary_section(const ReportInput& input);

std::string_view style_sheet();
std::string html_start(std::string_view title);  // up to and with <main>
inline constexpr std::string_view html_end = "</main>\n</body>\n</html>\n";
std::string html_table(const Table& table);  // every cell escaped, statuses as badges
// The picture that Graphviz made of `dot`, in a <div> of that class; its source without Graphviz.
std::string graph_markup(const std::string& dot, std::string_view name);
std::string status_badge(Status status);
std::string section(std::string_view id, std::string_view heading, std::string_view body);

}  // namespace indexpool::reports
