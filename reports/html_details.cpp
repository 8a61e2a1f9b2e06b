#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/plots.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/side_by_side.hpp"
#include "indexpool/reports/status_style.hpp"
#include "indexpool/reports/summary.hpp"
#include "indexpool/reports/utilisation.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t most_problems = 200, most_records = 400, most_environments = 50;
constexpr std::size_t reason_limit = 2000;

std::string problem_markup(const Record& record) {
  const Verdict& verdict = record.verdict;
  std::string reasons;
  if (!verdict.reason.empty()) {
    reasons += fmt::format("<p>{}</p>\n", escape_xml(shortened(verdict.reason, reason_limit)));
  }
  for (const Check& check : verdict.checks) {
    if (check.status == Status::passed || check.reason.empty()) continue;
    if (verdict.reason.find(check.reason) != std::string::npos) continue;
    reasons +=
        fmt::format("<p>{} <b>{}</b>: {}</p>\n", status_badge(check.status), escape_xml(check.name),
                    escape_xml(shortened(check.reason, reason_limit)));
  }
  const std::string repeat =
      record.repeat.empty() ? "" : fmt::format("<pre>{}</pre>\n", escape_xml(record.repeat));
  return fmt::format("<div class=\"problem\"><h3>{} {} / {} on {}, {}</h3>\n{}{}</div>\n",
                     status_badge(verdict.status), escape_xml(record.op),
                     escape_xml(record.implementation), escape_xml(record.environment.target),
                     escape_xml(record.case_name), reasons, repeat);
}

std::string rest_note(std::size_t all, std::size_t shown, std::string_view what) {
  if (all <= shown) return "";
  return fmt::format("<p class=\"note\">{} more {} in records.jsonl.</p>\n",
                     format_count(static_cast<std::int64_t>(all - shown)), what);
}

struct PlotText {
  std::string_view plot, heading, note;
};
constexpr PlotText plot_texts[] = {
    {"memory", "Memory", "Indexer cache of all layers, one sequence."},
    {"time", "Time of one decode step",
     "All layers, one sequence; the band is the prediction's interval."},
    {"prefill", "Time of a whole prompt",
     "All layers, one sequence, chunk after chunk; the band is the prediction's interval."},
};

Table curve_table(const std::vector<Curve>& curves) {
  Table table{{{"tokens", "tokens", true}}, {}};
  std::set<double> tokens;
  for (const Curve& curve : curves) {
    table.columns.push_back({curve.name, curve.name, true});
    tokens.insert(curve.tokens.begin(), curve.tokens.end());
  }
  for (const double at : tokens) {
    std::vector<Cell> row = {Cell(format_tokens(std::llround(at)))};
    for (const Curve& curve : curves) {
      const auto found = std::find(curve.tokens.begin(), curve.tokens.end(), at);
      const auto i = static_cast<std::size_t>(found - curve.tokens.begin());
      const bool known = i < curve.value.size();
      row.push_back(!known                    ? Cell()
                    : curve.unit == "seconds" ? Cell(format_seconds(curve.value[i]))
                    : curve.unit == "bytes"   ? Cell(format_bytes(curve.value[i]))
                                              : Cell(fmt::format("{:.4g}", curve.value[i])));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string plot_figure(const std::string& plot, const std::vector<Curve>& curves) {
  const std::string picture = curve_plot(curves);
  if (picture.empty()) return "";
  PlotText text{plot, plot, ""};
  for (const PlotText& known : plot_texts) {
    if (known.plot == plot) text = known;
  }
  return fmt::format(
      "<figure><h3>{}</h3><p class=\"note\">{}</p>\n{}"
      "<details><summary>the numbers</summary>\n{}</details></figure>\n",
      escape_xml(text.heading), text.note, picture, html_table(curve_table(curves)));
}

}  // namespace

std::string problems_section(const ReportInput& input) {
  const std::vector<std::size_t> order = to_look_at(input.records);
  if (order.empty()) return "";
  std::string body;
  const std::size_t shown = std::min(order.size(), most_problems);
  for (std::size_t i = 0; i < shown; ++i) body += problem_markup(input.records[order[i]]);
  return section("problems", "What to look at", body + rest_note(order.size(), shown, "records"));
}

std::string utilisation_section(const ReportInput& input) {
  const std::string plot = utilisation_plot(input.records);
  const std::string tables = utilisation_markup(input.records);
  if (plot.empty() && tables.empty()) return "";
  return section("utilisation", "How much of each bound was used",
                 "<p class=\"note\">Each mark is the worst error of one check divided by what "
                 "rounding may cause at most. Right of 1 the result is wrong; far left means the "
                 "bound was hardly used. Exact checks allow no difference at all.</p>\n" +
                     plot + tables);
}

std::string curves_section(const ReportInput& input) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Curve>> plots;
  for (const Curve& curve : input.curves) {
    if (!plots.contains(curve.plot)) order.push_back(curve.plot);
    plots[curve.plot].push_back(curve);
  }
  std::string figures;
  for (const std::string& plot : order) figures += plot_figure(plot, plots[plot]);
  if (figures.empty()) return "";
  return section("curves", "Memory and time against context length",
                 "<div class=\"plots\">\n" + figures + "</div>\n");
}

std::string pipeline_section(const ReportInput& input) {
  if (input.records.empty()) return "";
  return section("pipeline", "Pipeline", graph_markup(pipeline_dot(input.records), "pipeline"));
}

std::string records_section(const ReportInput& input) {
  if (input.records.size() < 2) return "";
  const std::size_t shown = std::min(input.records.size(), most_records);
  const std::vector<Record> first(input.records.begin(),
                                  input.records.begin() + static_cast<std::ptrdiff_t>(shown));
  return section("records", "Every record",
                 fmt::format("<details{}><summary>{} records, side by side</summary>\n{}{}"
                             "</details>\n",
                             input.records.size() <= most_rows_for_people ? " open=\"open\"" : "",
                             format_count(static_cast<std::int64_t>(input.records.size())),
                             html_table(side_by_side_table(first, false)),
                             rest_note(input.records.size(), shown, "records")));
}

std::string environment_section(const ReportInput& input) {
  std::set<std::tuple<std::string, std::string, std::string, std::string, std::string, std::string,
                      std::string>>
      seen;
  Table table{{{"target", "runs on"},
               {"device", "device"},
               {"driver", "driver"},
               {"toolkit", "toolkit"},
               {"compiler", "compiler"},
               {"clocks", "clocks"},
               {"version", "version"}},
              {}};
  for (const Record& record : input.records) {
    const Environment& e = record.environment;
    if (seen.size() == most_environments) break;
    if (!seen.insert({e.target, e.device, e.driver, e.toolkit, e.compiler, e.clocks, e.version})
             .second) {
      continue;
    }
    table.rows.push_back(
        {e.target, e.device, e.driver, e.toolkit, e.compiler, e.clocks, e.version});
  }
  if (table.rows.empty()) return "";
  return section("environment", "Where it ran", html_table(table));
}

std::string glossary_section(const ReportInput&) {
  std::string statuses;
  for (const StatusStyle& row : status_styles()) {
    statuses +=
        fmt::format("<dt>{}</dt><dd>{}</dd>\n", status_badge(row.status), escape_xml(row.meaning));
  }
  return section(
      "glossary", "How to read this page",
      "<dl>\n" + statuses +
          "<dt>error / bound</dt><dd>The largest difference from the reference, divided by the "
          "most "
          "that rounding in the documented order can cause for exactly these inputs. Above 1 is "
          "wrong, whatever the inputs.</dd>\n"
          "<dt>decidable rows</dt><dd>Rows whose selected set the bounds determine: the scores of "
          "what is in and what is out are further apart than their errors. On the others several "
          "sets are right, and the answer must be one of them.</dd>\n"
          "<dt>runs on</dt><dd><b>simt</b> executes the CUDA kernel source on the CPU, one fiber "
          "per "
          "thread; <b>cuda</b> is a GPU; <b>reference</b> is the oracle against recorded outputs "
          "of "
          "another implementation.</dd>\n"
          "<dt>interval</dt><dd>The prediction with every device constant at its most and least "
          "favourable published or measured value.</dd>\n"
          "<dt>limited by</dt><dd>The resource that alone would take longest: hbm (device memory), "
          "l2, shared (memory), matrix (tensor cores), f32, integer and special (the pipes of an "
          "SM), issue (of instructions), latency (steps of a block that wait for each other), "
          "launch, fill (until the first bytes are there), serial (dependent steps).</dd>\n"
          "</dl>\n");
}

}  // namespace indexpool::reports
