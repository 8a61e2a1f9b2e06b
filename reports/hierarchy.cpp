#include "indexpool/reports/hierarchy.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

constexpr const char* bounding = "#c4302b";

// An edge between two levels: whose time it carries, and what passes.
struct Level {
  std::string_view term;  // of the prediction
  std::string_view from, to;
  double Forecast::*amount;
  std::string_view unit;
};
constexpr std::array<Level, 6> levels = {
    {{"hbm", "HBM", "L2", &Forecast::hbm_bytes, "B"},
     {"l2", "L2", "shared", &Forecast::l2_bytes, "B"},
     {"shared", "shared", "registers", &Forecast::shared_bytes, "B"},
     {"matrix", "registers", "matrix", &Forecast::matrix_flop, "FLOP"},
     {"f32", "registers", "f32", &Forecast::f32_flop, "FLOP"},
     {"issue", "registers", "issue", &Forecast::warp_instructions, "instructions"}}};
bool computes(const Level& level) { return level.from == "registers"; }

struct Place {
  std::string_view id, label;
};
constexpr std::array<Place, 4> memories = {
    {{"HBM", "HBM"}, {"L2", "L2"}, {"shared", "shared\\nmemory"}, {"registers", "registers"}}};
constexpr std::array<Place, 3> units = {
    {{"matrix", "matrix units"}, {"f32", "f32 units"}, {"issue", "warp schedulers"}}};

double seconds_of(const Prediction& prediction, std::string_view term) {
  for (const CostTerm& each : prediction.terms) {
    if (each.name == term) return each.time.value;
  }
  return 0;
}

std::string amount_text(double amount, std::string_view unit) {
  if (unit == "B") return format_bytes(amount);
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (amount >= 999.5 && prefix + 1 < std::size(prefixes)) {
    amount /= 1000;
    ++prefix;
  }
  const bool word = unit == "instructions" && prefix > 0;
  return fmt::format("{:.3g} {}{}{}", amount, prefixes[prefix], word ? " " : "", unit);
}

bool is_level(std::string_view term) {
  return std::any_of(levels.begin(), levels.end(),
                     [&](const Level& level) { return level.term == term; });
}

// Text of a Graphviz label in HTML form.
std::string cell_line(const std::string& text, bool limits) {
  return fmt::format(
      "<tr><td align=\"left\">{}</td></tr>",
      limits ? fmt::format("<font color=\"{}\"><b>{}</b></font>", bounding, text) : text);
}

// Name and time of an operation, and what of it is no level: launch, serial steps, latencies.
std::string operation_line(std::size_t row, const Forecast& forecast) {
  const Prediction& prediction = forecast.prediction;
  std::string lines = cell_line(fmt::format("<b>{}</b>", escape_xml(forecast.op)), false);
  if (forecast.implementation != forecast.op) {
    lines += cell_line(escape_xml(shortened(forecast.implementation, 24)), false);
  }
  lines += cell_line(fmt::format("<b>{}</b>", format_seconds(prediction.time.value)), false);
  for (const CostTerm& term : prediction.terms) {
    if (is_level(term.name) || term.time.value <= 0) continue;
    lines += cell_line(fmt::format("{} {}", escape_xml(term.name), format_seconds(term.time.value)),
                       term.name == prediction.bound_by);
  }
  return fmt::format(
      "  \"{} op\" [shape=plaintext, style=\"\", label=<<table border=\"0\" cellborder=\"0\" "
      "cellspacing=\"0\" cellpadding=\"1\">{}</table>>];\n",
      row, lines);
}

// Thicker where a larger share of the operation's time passes.
double pen_width(double seconds, double whole) {
  return whole > 0 ? 1 + 4 * std::clamp(seconds / whole, 0.0, 1.0) : 1;
}

std::string edge_line(std::size_t row, const Level& level, const Forecast& forecast) {
  const double amount = forecast.*level.amount;
  const double seconds = seconds_of(forecast.prediction, level.term);
  const bool limits = forecast.prediction.bound_by == level.term;
  const std::string line = fmt::format("  \"{} {}\" -> \"{} {}\"", row, level.from, row, level.to);
  if (!(amount > 0)) return line + " [style=dotted, arrowhead=none];\n";
  return line + fmt::format(" [label=\" {} \\n {} \", penwidth={:.2f}{}];\n",
                            amount_text(amount, level.unit), format_seconds(seconds),
                            pen_width(seconds, forecast.prediction.time.value),
                            limits ? fmt::format(", color=\"{0}\", fontcolor=\"{0}\"", bounding)
                                   : std::string());
}

std::string row_of(std::size_t row, const Forecast& forecast) {
  std::string out = operation_line(row, forecast);
  for (const Place& place : memories) {
    out += fmt::format("  \"{} {}\" [label=\"{}\"];\n", row, place.id, place.label);
  }
  out += fmt::format("  \"{0} op\" -> \"{0} HBM\" [style=invis];\n", row);
  for (const Level& level : levels) {
    if (computes(level) && !(forecast.*level.amount > 0)) continue;
    for (const Place& unit : units) {
      if (unit.id != level.to) continue;
      out += fmt::format("  \"{} {}\" [label=\"{}\", shape=ellipse];\n", row, unit.id, unit.label);
    }
    out += edge_line(row, level, forecast);
  }
  return out;
}

// Of the longest context and its device; the operations of a decode step, or of a prompt where
// there is no decode.
std::vector<Forecast> step_of(const std::vector<Record>& records) {
  std::vector<Forecast> all = forecasts(records), step;
  std::erase_if(all, [](const Forecast& forecast) { return !(forecast.l2_bytes > 0); });
  const auto of_prompt = [](const Forecast& forecast) { return is_prefill(forecast.op); };
  if (!std::ranges::all_of(all, of_prompt)) std::erase_if(all, of_prompt);
  for (const Forecast& forecast : all) {
    if (forecast.tokens == all.back().tokens &&
        forecast.prediction.device == all.back().prediction.device) {
      step.push_back(forecast);
    }
  }
  return step;
}

}  // namespace

std::string hierarchy_dot(const std::vector<Record>& records) {
  const std::vector<Forecast> step = step_of(records);
  if (step.empty()) return "";
  std::string out = fmt::format(
      "digraph hierarchy {{\n"
      "  rankdir=LR; bgcolor=\"transparent\"; nodesep=0.25; ranksep=0.7;\n"
      "  fontname=\"Helvetica\"; fontsize=12;\n"
      "  labelloc=t; label=\"{}, {} tokens, {}: what passes each level and "
      "the time it alone would take\";\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=12, "
      "color=\"#868e96\", fillcolor=\"#f1f3f5\", margin=\"0.12,0.06\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=11, color=\"#868e96\", arrowsize=0.6];\n",
      is_prefill(step.back().op) ? "one layer of a prompt" : "one layer of a decode step",
      format_tokens(step.back().tokens), escape_dot(step.back().prediction.device));
  for (std::size_t row = 0; row < step.size(); ++row) out += row_of(row, step[row]);
  for (const char* column : {"op", "HBM", "L2", "shared", "registers"}) {
    out += "  { rank=same;";
    for (std::size_t row = 0; row < step.size(); ++row) {
      out += fmt::format(" \"{} {}\";", row, column);
    }
    out += " }\n";
  }
  for (std::size_t row = 1; row < step.size(); ++row) {  // one below the other
    out += fmt::format("  \"{} op\" -> \"{} op\" [style=invis];\n", row - 1, row);
  }
  return out + "}\n";
}

}  // namespace indexpool::reports
