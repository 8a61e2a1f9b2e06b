#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/html_sections.hpp"
#include "indexpool/reports/plots.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/status_style.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t most_forecasts = 24;

std::string fact(const std::string& value, const std::string& label) {
  return fmt::format(
      "<div class=\"fact\"><div class=\"value\">{}</div><div class=\"label\">{}</div></div>\n",
      escape_xml(value), escape_xml(label));
}

// The forecasts of the longest context; those of one device and length can be summed.
std::string step_fact(const std::vector<Forecast>& all) {
  const Forecast& last = all.back();
  double time = 0, low = 0, high = 0;
  std::int64_t layers = 1;
  for (const Forecast& forecast : all) {
    if (forecast.tokens != last.tokens || is_prefill(forecast.op) ||
        forecast.prediction.device != last.prediction.device) {
      continue;
    }
    const auto count = static_cast<double>(forecast.layers);
    layers = std::max(layers, forecast.layers);
    time += forecast.prediction.time.value * count;
    low += forecast.prediction.low.value * count;
    high += forecast.prediction.high.value * count;
  }
  if (time == 0) return "";
  return fact(
      fmt::format("{} ({})", format_seconds(time), format_interval(Seconds(low), Seconds(high))),
      fmt::format("indexer time of one decode step, {} layer{}", layers, layers == 1 ? "" : "s"));
}

// The memory curves at `tokens`, where they have a point there; what rounds to the same is said
// once.
std::string memory_facts(const ReportInput& input, std::int64_t tokens) {
  std::string out, last;
  for (const Curve& curve : input.curves) {
    if (curve.plot != "memory" || curve.unit != "bytes") continue;
    for (std::size_t i = 0; i < std::min(curve.tokens.size(), curve.value.size()); ++i) {
      if (std::llround(curve.tokens[i]) != tokens) continue;
      const std::string value = format_bytes(curve.value[i]);
      if (value != last) out += fact(value, curve.name);
      last = value;
    }
  }
  return out;
}

std::string forecast_row(const Forecast& forecast, double low, double high) {
  const Prediction& prediction = forecast.prediction;
  std::string terms;
  for (const CostTerm& term : prediction.terms) {
    terms +=
        fmt::format("{}{}: {} = {}", terms.empty() ? "" : "\n", term.name,
                    term.formula.empty() ? "?" : term.formula, format_seconds(term.time.value));
  }
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
      "<td class=\"number\">{}</td><td>{}</td><td title=\"{}\">{}</td></tr>\n",
      escape_xml(forecast.op), is_prefill(forecast.op) ? "whole prompt, one launch" : "decode step",
      format_bytes(static_cast<double>(prediction.hbm_bytes.value)),
      format_seconds(prediction.time.value), format_interval(prediction.low, prediction.high),
      interval_bar(prediction, low, high), escape_xml(terms), escape_xml(prediction.bound_by));
}

std::string forecast_rows(const std::vector<Forecast>& shown) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Forecast& forecast : shown) {
    low = std::min(low, std::max(forecast.prediction.low.value, 1e-9));
    high = std::max({high, forecast.prediction.high.value, low});
  }
  std::string out =
      "<div class=\"scroll\"><table>\n<thead><tr><th>operation</th><th>runs once per</th>"
      "<th class=\"number\">HBM bytes</th><th class=\"number\">time, one layer</th>"
      "<th class=\"number\">interval</th><th></th><th>limited by</th></tr></thead>\n<tbody>\n";
  for (const Forecast& forecast : shown) out += forecast_row(forecast, low, high);
  return out + "</tbody>\n</table></div>\n";
}

}  // namespace

std::string verdict_section(const ReportInput& input) {
  const Status status = overall_status(input.records);
  const StatusStyle& row = style(status);
  std::string counts;
  for (const auto& [each, count] : status_counts(input.records)) {
    counts += fmt::format("<span class=\"badge {}\">{} {}</span>\n", to_string(each),
                          format_count(count), to_string(each));
  }
  return fmt::format(
      "<section class=\"verdict {0}\">\n<div class=\"mark {0}\">{1}</div>\n<div><h1>{2}</h1>\n"
      "<div class=\"word\">{3}</div>\n<p>{4}</p></div>\n<div class=\"counts\">{5}</div>\n"
      "</section>\n",
      to_string(status), row.symbol, escape_xml(input.title), row.verdict,
      escape_xml(headline(input.records)), counts);
}

std::string comparison_section(const ReportInput& input) {
  if (input.records.empty()) return "";
  return section("compared", "What was compared", html_table(comparison_table(input.records)));
}

std::string forecast_section(const ReportInput& input) {
  std::vector<Forecast> all = forecasts(input.records);
  if (all.empty()) return "";
  const Forecast& last = all.back();
  const std::string heading =
      fmt::format("What it would take: {} tokens on {}", format_tokens(last.tokens),
                  escape_xml(last.prediction.device));
  std::vector<Forecast> shown;
  for (const Forecast& forecast : all) {
    if (forecast.tokens == last.tokens && forecast.prediction.device == last.prediction.device &&
        shown.size() < most_forecasts) {
      shown.push_back(forecast);
    }
  }
  std::string body = "<div class=\"facts\">\n" + step_fact(all) + memory_facts(input, last.tokens) +
                     "</div>\n" + forecast_rows(shown);
  return section("forecast", heading, body);
}

std::string repeat_section(const ReportInput& input) {
  if (input.command.empty()) return "";
  return section("repeat", "Run it again",
                 fmt::format("<pre>{}</pre>\n", escape_xml(input.command)));
}

}  // namespace indexpool::reports
