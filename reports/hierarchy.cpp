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
  bool bytes;  // else operations
};
constexpr std::array<Level, 5> levels = {
    {{"hbm", "HBM", "L2", &Forecast::hbm_bytes, true},
     {"l2", "L2", "shared", &Forecast::l2_bytes, true},
     {"shared", "shared", "registers", &Forecast::shared_bytes, true},
     {"matrix", "registers", "matrix", &Forecast::matrix_flop, false},
     {"f32", "registers", "f32", &Forecast::f32_flop, false}}};

struct Place {
  std::string_view id, label;
};
constexpr std::array<Place, 6> places = {{{"HBM", "HBM"},
                                          {"L2", "L2"},
                                          {"shared", "shared\\nmemory"},
                                          {"registers", "registers"},
                                          {"matrix", "matrix units"},
                                          {"f32", "f32 units"}}};

double seconds_of(const Prediction& prediction, std::string_view term) {
  for (const CostTerm& each : prediction.terms) {
    if (each.name == term) return each.time.value;
  }
  return 0;
}

std::string operations_text(double count) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (count >= 999.5 && prefix + 1 < std::size(prefixes)) {
    count /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}FLOP", count, prefixes[prefix]);
}

bool is_level(std::string_view term) {
  return std::any_of(levels.begin(), levels.end(),
                     [&](const Level& level) { return level.term == term; });
}

// What is no level: launch, serial steps, instructions to issue, latencies of a block.
std::string other_terms(const Prediction& prediction) {
  std::string out;
  for (const CostTerm& term : prediction.terms) {
    if (is_level(term.name) || term.time.value <= 0) continue;
    out += fmt::format("\\n{} {}", escape_dot(term.name), format_seconds(term.time.value));
  }
  return out;
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
  return line + fmt::format(" [label=\"{}\\n{}\", penwidth={:.2f}{}];\n",
                            level.bytes ? format_bytes(amount) : operations_text(amount),
                            format_seconds(seconds),
                            pen_width(seconds, forecast.prediction.time.value),
                            limits ? fmt::format(", color=\"{0}\", fontcolor=\"{0}\"", bounding)
                                   : std::string());
}

std::string row_of(std::size_t row, const Forecast& forecast) {
  const Prediction& prediction = forecast.prediction;
  const bool elsewhere = !is_level(prediction.bound_by);
  std::string out = fmt::format(
      "  \"{} op\" [shape=plaintext, style=\"\", label=\"{}\\n{}{}\\n{}\"{}];\n", row,
      escape_dot(forecast.op),
      forecast.implementation == forecast.op ? "" : escape_dot(forecast.implementation) + "\\n",
      format_seconds(prediction.time.value) + other_terms(prediction),
      "limited by " + escape_dot(prediction.bound_by),
      elsewhere ? fmt::format(", fontcolor=\"{}\"", bounding) : std::string());
  for (const Place& place : places) {
    const bool unit = place.id == "matrix" || place.id == "f32";
    const bool idle = (place.id == "matrix" && !(forecast.matrix_flop > 0)) ||
                      (place.id == "f32" && !(forecast.f32_flop > 0));
    if (idle) continue;
    out += fmt::format("  \"{} {}\" [label=\"{}\"{}];\n", row, place.id, place.label,
                       unit ? ", shape=ellipse" : "");
  }
  out += fmt::format("  \"{0} op\" -> \"{0} HBM\" [style=invis];\n", row);
  for (const Level& level : levels) {
    const bool unit = level.from == "registers";
    if (unit && !(forecast.*level.amount > 0)) continue;
    out += edge_line(row, level, forecast);
  }
  return out;
}

// Of the longest context and its device; the operations of a decode step.
std::vector<Forecast> step_of(const std::vector<Record>& records) {
  std::vector<Forecast> all = forecasts(records), step;
  std::erase_if(all, [](const Forecast& forecast) {
    return is_prefill(forecast.op) || !(forecast.l2_bytes > 0);
  });
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
      "  fontname=\"Helvetica\"; fontsize=11;\n"
      "  label=\"one layer of a decode step at {} tokens on {}: bytes of each level and the time "
      "it "
      "alone would take; red limits the operation\";\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=12, "
      "color=\"#868e96\", fillcolor=\"#f1f3f5\", margin=\"0.12,0.06\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=10, color=\"#868e96\", arrowsize=0.6];\n",
      format_tokens(step.back().tokens), escape_dot(step.back().prediction.device));
  for (std::size_t row = 0; row < step.size(); ++row) out += row_of(row, step[row]);
  for (const char* column : {"op", "HBM", "L2", "shared", "registers"}) {
    out += "  { rank=same;";
    for (std::size_t row = 0; row < step.size(); ++row) {
      out += fmt::format(" \"{} {}\";", row, column);
    }
    out += " }\n";
  }
  return out + "}\n";
}

}  // namespace indexpool::reports
