#include "indexpool/reports/score_page.hpp"

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"

namespace indexpool::reports {
namespace {

std::string first_screen(const ScorePage& page) {
  std::string out = "<div class=\"facts\">\n";
  for (const ScorePage::Fact& fact : page.facts) {
    out += fmt::format(
        "<div class=\"fact\"><div class=\"value\">{}</div><div class=\"label\">{}</div></div>\n",
        escape_xml(fact.value), escape_xml(fact.label));
  }
  out += "</div>\n";
  for (const std::string& sentence : page.provenance) {
    out += fmt::format("<p class=\"note\">{}</p>\n", escape_xml(sentence));
  }
  return out;
}

std::string figure(const char* heading, const std::string& picture) {
  return fmt::format("<figure><h3>{}</h3>\n{}</figure>\n", heading, picture);
}

std::string pictures(const ScorePage& page) {
  const std::string scatter = scatter_plot(page.points);
  if (scatter.empty()) return "<p class=\"note\">No row has a time to draw.</p>\n";
  return "<div class=\"plots\">\n" + figure("Times", scatter) +
         figure("Errors", ratio_plot(page.points)) + "</div>\n";
}

}  // namespace

std::string score_html(const ScorePage& page) {
  return html_start(page.title) + fmt::format("<h1>{}</h1>\n", escape_xml(page.title)) +
         section("result", "On rows that no fit saw", first_screen(page)) +
         section("scatter", "Predicted against measured", pictures(page)) +
         section("errors", "Errors by kernel and by what limits it", html_table(page.errors)) +
         section("worst", "Held-out rows missed by most", html_table(page.worst)) +
         (page.constants.rows.empty()
              ? ""
              : section("constants", "What was fitted", html_table(page.constants))) +
         section("repeat", "How to repeat it",
                 fmt::format("<pre><code>{}</code></pre>\n", escape_xml(page.command))) +
         std::string(html_end);
}

}  // namespace indexpool::reports
