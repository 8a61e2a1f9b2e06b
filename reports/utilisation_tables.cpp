// Rows as tables and sections, and the reasons why bounds are what they are.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/utilisation.hpp"

namespace indexpool::reports {
namespace {

struct Reason {
  std::string_view op, check;  // an empty op: any
  std::string_view text;
};
// The derivations are in reference/ and verify/checks/checksum.cpp.
constexpr Reason reasons[] = {
    {"logits", "bound",
     "Adds the magnitudes of all head_dim x heads roundings (a truncation each on matrix cores), "
     "as "
     "if all went one way; real ones cancel, so the share shrinks with the square root of their "
     "number. Where relu cuts most heads off, their roundings are bounded all the same."},
    {"", "bound",
     "Adds the error of each exponential, of the weights' sum, of every product and of the "
     "division at its largest, and half a subnormal step per operation, which is all there is "
     "when keys are tiny."},
    {"", "checksum",
     "gamma_n over the magnitudes of all channels, plus the enclosure of every pooled channel; "
     "roundings of a sum of mixed signs cancel, their bounds do not."},
    {"", "weight_sum",
     "Lets every weight of a pool and the sum of all channels be off in the same direction; "
     "softmax weights that come from one sum are off in opposite ones."},
    {"", "golden",
     "The public implementation's own roundings (of storage type and of its order of sums) are "
     "bounded step by step, each at its largest."}};

std::string octave_bars(const UtilisationRow& row) {
  // Eight levels, scaled to the fullest octave; the left end is [1/2, 1).
  static constexpr const char* levels[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t shown = 16;
  std::int64_t most = 1;
  for (const std::int64_t runs : row.octaves) most = std::max(most, runs);
  std::string bars;
  for (std::size_t k = 0; k < std::min(row.octaves.size(), shown); ++k) {
    const double share = static_cast<double>(row.octaves[k]) / static_cast<double>(most);
    bars += levels[static_cast<std::size_t>(std::ceil(share * 8))];
  }
  return bars;
}

std::string looseness(double worst) {
  if (worst == 0) return "";
  return fmt::format("{:.3g}", 1 / worst);
}

std::vector<UtilisationRow> loose_rows(const std::vector<UtilisationRow>& rows) {
  std::vector<UtilisationRow> found;
  for (const UtilisationRow& row : rows) {
    if (loose(row)) found.push_back(row);
  }
  return found;
}

// What the list of loose checks says when it is empty.
std::string none_loose(const std::vector<UtilisationRow>& rows) {
  std::int64_t campaign = 0;
  for (const UtilisationRow& row : rows) campaign = std::max(campaign, row.campaign);
  if (campaign < campaign_for_loose) {
    return fmt::format(
        "Whether a bound is loose takes {} runs to say: indexpool utilisation --runs {}.",
        format_count(campaign_for_loose), campaign_for_loose);
  }
  return fmt::format("No check is loose: in {} runs each used over a thousandth of its bound.",
                     format_count(campaign));
}

constexpr std::string_view heading_note =
    "Worst error over bound of each run that had an error; exact runs are counted apart. Checks "
    "that allow no difference, or a set of admissible codes, have no such figure and are not "
    "listed.";

}  // namespace

std::string_view why_worst_case(std::string_view op, std::string_view check) {
  for (const Reason& row : reasons) {
    if (row.check == check && (row.op.empty() || row.op == op)) return row.text;
  }
  return "";
}

Table utilisation_table(const std::vector<UtilisationRow>& rows) {
  Table table{{{"op", "operation"},
               {"kernel", "kernel"},
               {"check", "check"},
               {"of", "of"},
               {"runs", "runs", true},
               {"exact", "exact runs", true},
               {"elements", "elements", true},
               {"median", "median", true},
               {"p90", "90 %", true},
               {"worst", "largest", true},
               {"bound_over_worst", "bound / largest error", true},
               {"octaves", "runs by octave, 1 to the left"}},
              {}};
  for (const UtilisationRow& row : rows) {
    table.rows.push_back(
        {row.op,
         row.kernel,
         row.check,
         row.of,
         {format_count(row.runs), row.runs},
         {format_count(row.exact), row.exact},
         {format_count(row.elements), row.elements},
         {format_utilisation(row.median), row.median},
         {format_utilisation(row.p90), row.p90},
         {format_utilisation(row.worst), row.worst},
         {looseness(row.worst), row.worst > 0 ? CellValue(1 / row.worst) : CellValue()},
         octave_bars(row)});
  }
  return table;
}

Table loose_table(const std::vector<UtilisationRow>& rows) {
  Table table{{{"op", "operation"},
               {"kernel", "kernel"},
               {"check", "check"},
               {"of", "of"},
               {"runs", "runs", true},
               {"worst", "largest", true},
               {"bound_over_worst", "bound / largest error", true},
               {"why", "why the bound is what it is"}},
              {}};
  for (const UtilisationRow& row : loose_rows(rows)) {
    table.rows.push_back(
        {row.op,
         row.kernel,
         row.check,
         row.of,
         {format_count(row.runs), row.runs},
         {format_utilisation(row.worst), row.worst},
         {looseness(row.worst), row.worst > 0 ? CellValue(1 / row.worst) : CellValue()},
         std::string(why_worst_case(row.op, row.check))});
  }
  return table;
}

std::string utilisation_markdown(const std::vector<Record>& records) {
  constexpr std::size_t most_rows = 60;
  std::vector<UtilisationRow> rows = utilisation_rows(records);
  if (rows.empty()) return "";
  const Table listed = loose_table(rows);
  Table table = utilisation_table(rows);
  table.rows.resize(std::min(table.rows.size(), most_rows));
  std::string out = fmt::format("\n## How much of each bound was used\n\n{}\n\n", heading_note);
  out += render(table, Format::md) + '\n';
  if (listed.rows.empty()) return out + none_loose(rows) + '\n';
  Table shown = listed;
  shown.rows.resize(std::min(shown.rows.size(), most_rows));
  return out + "Loose: the bound is over a thousand times the largest error seen.\n\n" +
         render(shown, Format::md);
}

std::string utilisation_markup(const std::vector<Record>& records) {
  const std::vector<UtilisationRow> rows = utilisation_rows(records);
  if (rows.empty()) return "";
  std::string out = fmt::format("<p class=\"note\">{}</p>\n", heading_note);
  std::vector<UtilisationRow> all, parts;
  for (const UtilisationRow& row : rows) (row.of == "all" ? all : parts).push_back(row);
  if (!all.empty()) out += html_table(utilisation_table(all));
  if (!parts.empty()) {
    out += fmt::format("<details><summary>By mode and fill ({} rows)</summary>\n{}</details>\n",
                       parts.size(), html_table(utilisation_table(parts)));
  }
  const Table listed = loose_table(rows);
  if (listed.rows.empty()) {
    return out + fmt::format("<p class=\"note\">{}</p>\n", escape_xml(none_loose(rows)));
  }
  return out + "<h3>Loose: over a thousand times the largest error seen</h3>\n" +
         html_table(listed);
}

}  // namespace indexpool::reports
