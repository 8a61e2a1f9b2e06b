#include "indexpool/reports/train_page.hpp"

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"

namespace indexpool::reports {
namespace {

std::string first_screen(const TrainPage& page) {
  std::string out = "<div class=\"facts\">\n";
  for (const TrainPage::Fact& fact : page.facts) {
    out += fmt::format(
        "<div class=\"fact\"><div class=\"value\">{}</div><div class=\"label\">{}</div></div>\n",
        escape_xml(fact.value), escape_xml(fact.label));
  }
  out += "</div>\n";
  for (const std::string& sentence : page.notes)
    out += fmt::format("<p class=\"note\">{}</p>\n", escape_xml(sentence));
  return out;
}

std::string curves(const TrainPage& page) {
  std::string out;
  for (const LinePlot& plot : page.plots) {
    const std::string picture = line_plot(plot);
    if (!picture.empty())
      out += fmt::format("<figure><h3>{}</h3>\n{}</figure>\n", escape_xml(plot.heading), picture);
  }
  return out.empty() ? "<p class=\"note\">One epoch has no curve.</p>\n"
                     : "<div class=\"plots\">\n" + out + "</div>\n";
}

}  // namespace

std::string train_html(const TrainPage& page) {
  return html_start(page.title) + fmt::format("<h1>{}</h1>\n", escape_xml(page.title)) +
         section("result", "On sequences it has not seen", first_screen(page)) +
         section("curves", "Epoch by epoch", curves(page)) +
         section("parameters", "What was learnt", html_table(page.parameters)) +
         section("epochs", "Every epoch", html_table(page.epochs)) +
         section("repeat", "How to repeat it",
                 fmt::format("<pre><code>{}</code></pre>\n", escape_xml(page.command))) +
         std::string(html_end);
}

}  // namespace indexpool::reports
