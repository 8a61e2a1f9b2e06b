#include "indexpool/reports/cli/score_tables.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::Cell;
using reports::Table;

Cell percent(double share, bool present = true) {
  if (!present) return {};
  return {reports::format_percent(share), share};
}
Cell count(std::int64_t n) { return {fmt::format("{}", n), n}; }
Cell seconds(double s) { return {reports::format_seconds(s), s}; }

std::string preamble(const Score& score) {
  const TimingTable& table = score.table;
  std::int64_t held = 0;
  for (const ScoredRow& row : score.rows) held += row.held_out ? 1 : 0;
  std::string text =
      fmt::format("{}: {} rows, read as {}", table.file, table.rows.size(), table.adapter);
  if (table.skipped > 0)
    text += fmt::format("; {} more left out ({})", table.skipped, table.skipped_why);
  text += fmt::format("\ndevice: {}{}\n", score.device,
                      table.measured_on.empty() ? "" : ", measured on " + table.measured_on);
  text += fmt::format("constants: {} ({}), {}; {}\n", score.constants.name,
                      score.fitted_here ? "fitted now" : "given", score.constants.provenance,
                      score.constants.source);
  text += fmt::format(
      "held out: {} rows. Rows of one shape are held out together, by a hash of shape and seed.\n",
      held);
  return text;
}

std::string how_found(const FittedConstant& constant, const FormConstant& form) {
  if (!constant.determined) return "assumed: no row depends on it";
  return form.continuous ? "fitted" : "best of those tried";
}

}  // namespace

Table error_table(const Score& score) {
  Table table{{{"kernel", "kernel"},
               {"part", "rows"},
               {"regime", "bound by"},
               {"fitted_rows", "fitted", true},
               {"held_out_rows", "held out", true},
               {"mean_error", "mean error", true},
               {"median_error", "median", true},
               {"p95_error", "95th", true},
               {"bias", "bias", true},
               {"coverage", "in 90 % interval", true},
               {"fitted_mean_error", "mean, fitted", true}},
              {}};
  for (const ErrorSummary& each : score.summaries) {
    const bool any = each.held_out > 0;
    table.rows.push_back({each.kernel, each.part, each.regime, count(each.fitted),
                          count(each.held_out), percent(each.mean, any), percent(each.median, any),
                          percent(each.p95, any), percent(each.bias, any),
                          percent(each.coverage, any), percent(each.fitted_mean, each.fitted > 0)});
  }
  return table;
}

Table constant_table(const Score& score) {
  Table table{{{"kernel", "kernel"},
               {"constant", "constant"},
               {"value", "value", true},
               {"low", "low", true},
               {"high", "high", true},
               {"provenance", "provenance"},
               {"meaning", "meaning"}},
              {}};
  for (const Implementation& each : score.constants.implementations) {
    const KernelForm& form = kernel_form(each.form);
    for (std::size_t i = 0; i < form.constants.size(); ++i) {
      const FittedConstant& constant = each.constants[i];
      const auto number = [](double value) { return Cell(fmt::format("{:.4g}", value), value); };
      table.rows.push_back({each.kernel, std::string(form.constants[i].name),
                            number(constant.value), number(constant.low), number(constant.high),
                            how_found(constant, form.constants[i]),
                            std::string(form.constants[i].says)});
    }
  }
  return table;
}

Table row_table(const Score& score) {
  Table table{{{"line", "line", true},
               {"kernel", "kernel"},
               {"part", "rows"},
               {"shape", "shape"},
               {"held_out", "held out"},
               {"regime", "bound by"},
               {"measured_s", "measured", true},
               {"predicted_s", "predicted", true},
               {"low_s", "low", true},
               {"high_s", "high", true}},
              {}};
  for (const ScoredRow& row : score.rows) {
    table.rows.push_back({count(row.row->line), row.row->kernel, row.row->part,
                          shape_text(row.row->shape),
                          Cell(row.held_out ? "yes" : "no", row.held_out),
                          std::string(to_string(row.predicted.parts.bound_by())),
                          seconds(row.row->time.value), seconds(row.predicted.time.value),
                          seconds(row.predicted.low.value), seconds(row.predicted.high.value)});
  }
  return table;
}

Table term_table(const Score& score, const DeviceSpec& device) {
  Table table{{{"kernel", "kernel"},
               {"shape", "shape"},
               {"term", "term"},
               {"time_s", "time", true},
               {"formula", "formula"},
               {"source", "source"}},
              {}};
  std::map<std::string, const ScoredRow*> worst;
  for (const ScoredRow& row : score.rows) {
    const ScoredRow*& at = worst[row.row->kernel];
    if (row.held_out && (at == nullptr || std::abs(row.error()) > std::abs(at->error()))) at = &row;
  }
  for (const auto& each : worst) {
    const std::string& kernel = each.first;
    const ScoredRow* row = each.second;
    if (row == nullptr) continue;
    const Prediction prediction =
        explain(score.constants, *score.constants.find(kernel), row->row->shape, device);
    const std::string shape = shape_text(row->row->shape);
    const auto add = [&](std::string term, Cell time, std::string formula, std::string source) {
      table.rows.push_back({Cell(kernel), Cell(shape), Cell(std::move(term)), std::move(time),
                            Cell(std::move(formula)), Cell(std::move(source))});
    };
    add("measured", seconds(row->row->time.value), "", fmt::format("line {}", row->row->line));
    add("predicted", seconds(prediction.time.value), "bound by " + prediction.bound_by,
        reports::format_interval(prediction.low, prediction.high));
    for (const CostTerm& term : prediction.terms) {
      add(term.name, term.time.value > 0 ? seconds(term.time.value) : Cell(), term.formula,
          term.source);
    }
  }
  return table;
}

std::string score_text(const Score& score, const DeviceSpec& device, reports::Format format,
                       bool explained, bool colour) {
  using reports::Format;
  if (format == Format::json || format == Format::csv) {
    return render(explained ? constant_table(score) : error_table(score), format, false);
  }
  std::string text = preamble(score) + "\n" + render(error_table(score), format, colour);
  if (!explained) return text;
  text += "\nConstants\n\n" + render(constant_table(score), format, colour);
  text += "\nThe held-out row of each kernel that is missed by most\n\n" +
          render(term_table(score, device), format, colour);
  return text;
}

}  // namespace indexpool::cli
