#include "indexpool/reports/recall_page.hpp"

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"

namespace indexpool::reports {
namespace {

std::string sentences(const std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& note : notes)
    out += fmt::format("<p class=\"note\">{}</p>\n", escape_xml(note));
  return out;
}

std::string pictures(const std::vector<LinePlot>& plots) {
  std::string out;
  for (const LinePlot& plot : plots) {
    const std::string picture = line_plot(plot);
    if (!picture.empty())
      out += fmt::format("<figure><h3>{}</h3>\n{}</figure>\n", escape_xml(plot.heading), picture);
  }
  return out.empty() ? "" : "<div class=\"plots\">\n" + out + "</div>\n";
}

std::string ranking(const RecallPage::Ranking& of, bool open) {
  return fmt::format("<details{}><summary>{}</summary>\n<div class=\"scroll\">{}</div></details>\n",
                     open ? " open=\"open\"" : "", escape_xml(of.heading), html_table(of.table));
}

std::string part(const RecallPage::Part& of) {
  std::string body = sentences(of.notes) + pictures(of.plots);
  for (const RecallPage::Ranking& each : of.rankings)
    body += ranking(each, &each == &of.rankings.front());
  return section(of.name, of.name, body);
}

}  // namespace

std::string recall_html(const RecallPage& page) {
  std::string out = html_start(page.title) + fmt::format("<h1>{}</h1>\n", escape_xml(page.title));
  out += section("read", "How to read it", sentences(page.notes));
  for (const RecallPage::Part& each : page.parts) out += part(each);
  return out + section("policies", "What was compared", html_table(page.policies)) +
         section("repeat", "How to repeat it",
                 fmt::format("<pre><code>{}</code></pre>\n", escape_xml(page.command))) +
         std::string(html_end);
}

}  // namespace indexpool::reports
