#include "indexpool/reports/cli/strategy_tables.hpp"

#include <set>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

namespace st = verify::strategies;
using reference::training::Interval;
using reports::Cell;
using reports::Table;

Cell interval_cell(const Interval& of) {
  return {fmt::format("{:.3f} ({:.3f} to {:.3f})", of.value, of.low, of.high), of.value};
}
Cell gain_cell(const Interval& of) {
  return {fmt::format("{:+.3f} ({:+.3f} to {:+.3f})", of.value, of.low, of.high), of.value};
}
Cell ratio_cell(double part, double whole) {
  if (whole == 0) return {};
  return {fmt::format("{:.3g} x", part / whole), part / whole};
}
Cell ratio_cell(std::int64_t part, std::int64_t whole) {
  return ratio_cell(static_cast<double>(part), static_cast<double>(whole));
}
Cell share_cell(double share) { return {fmt::format("{:.1f} %", 100 * share), share}; }
Cell count_cell(std::int64_t count) { return {reports::format_count(count), count}; }

std::string overhead_text(const st::Overhead& of) {
  return fmt::format("{:.2f} % ({:.2f} to {:.2f})", 100 * of.value, 100 * of.low, 100 * of.high);
}

// Why a strategy with nothing in a column shows nothing there.
Cell staleness_cell(const st::Outcome& outcome) {
  if (outcome.variant.settings.incremental.threshold < 0) return {};
  const double worst = outcome.staleness.utilisation;
  return {fmt::format("{:.2f}", worst), worst};
}

const char* within(bool ok) { return ok ? "yes" : "no"; }

}  // namespace

Table strategy_table(const Outcomes& outcomes) {
  Table table{{{"strategy", "strategy"},
               {"article", "article"},
               {"set_to", "set to"},
               {"beside", "beside"},
               {"form", "form"},
               {"recall", "recall"},
               {"recall_gained", "gained (lost)"},
               {"pools", "pools made", true},
               {"launches", "launches", true},
               {"written", "written", true},
               {"stored", "stored", true},
               {"read_per_step", "read a step", true},
               {"error_over_bound", "error/bound", true},
               {"verdict", "verdict"}},
              {}};
  for (const st::Outcome& each : outcomes) {
    table.rows.push_back({Cell(each.strategy), Cell(each.article), Cell(each.variant.name),
                          Cell(each.variant.beside), Cell(each.variant.policy),
                          interval_cell(each.recall), gain_cell(each.difference),
                          ratio_cell(each.counts.pools, each.baseline.pools),
                          ratio_cell(each.counts.launches, each.baseline.launches),
                          ratio_cell(each.counts.bytes_written, each.baseline.bytes_written),
                          ratio_cell(each.counts.bytes_stored, each.baseline.bytes_stored),
                          ratio_cell(st::read_per_step(each.counts, each.monitor),
                                     st::read_per_step(each.baseline, each.baseline_monitor)),
                          staleness_cell(each), reports::status_cell(each.verdict.status)});
  }
  return table;
}

Table monitoring_table(const Outcomes& outcomes) {
  Table table{{{"strategy", "strategy"},
               {"set_to", "set to"},
               {"weight_entropy", "entropy", true},
               {"hit_rate", "hits", true},
               {"hit_rate_above_85", "over 85 %"},
               {"predicted_pooling_s", "pooling a step"},
               {"pooling_below_5ms", "under 5 ms"},
               {"normalisation_violations", "sums not 1", true},
               {"checksum_failures", "checksums off", true}},
              {}};
  for (const st::Outcome& each : outcomes) {
    const st::Monitor& m = each.monitor;
    const double steps = static_cast<double>(m.steps), latency = st::latency_per_step_s(m);
    table.rows.push_back(
        {Cell(each.strategy), Cell(each.variant.name),
         Cell(fmt::format("{:.3f}", st::weight_entropy(m)), st::weight_entropy(m)),
         share_cell(st::hit_rate(m)),
         Cell(within(st::hit_rate(m) > st::published_hit_rate),
              st::hit_rate(m) > st::published_hit_rate),
         Cell(fmt::format("{} ({} to {})", reports::format_seconds(latency),
                          reports::format_seconds(m.latency_low_s / steps),
                          reports::format_seconds(m.latency_high_s / steps)),
              latency),
         Cell(within(latency < st::published_latency_s), latency < st::published_latency_s),
         count_cell(m.normalisation_violations), count_cell(m.checksum_failures)});
  }
  return table;
}

Table overlap_table(const Outcomes& outcomes) {
  Table table{{{"phase", "phase"},
               {"tokens", "tokens", true},
               {"layer_attention_s", "a layer's attention", true},
               {"layer_pooling_s", "its pooling", true},
               {"one_stream_overhead", "one stream adds"},
               {"two_streams_overhead", "a second stream adds"},
               {"within_5_percent", "within 5 %"},
               {"one_stream_overhead_of_step", "of the step, one", true},
               {"two_streams_overhead_of_step", "of the step, two", true}},
              {}};
  for (const st::Outcome& each : outcomes) {
    if (!each.overlap) continue;
    const st::Overlap& of = *each.overlap;
    const bool expected = of.two_streams.value <= st::published_overhead;
    const bool surely = of.two_streams.high <= st::published_overhead;
    table.rows.push_back(
        {Cell(step::to_string(of.options.phase)), count_cell(of.options.tokens),
         Cell(reports::format_seconds(of.layer.alone.time.value), of.layer.alone.time.value),
         Cell(reports::format_seconds(of.pooling.alone.time.value), of.pooling.alone.time.value),
         Cell(overhead_text(of.one_stream), of.one_stream.value),
         Cell(overhead_text(of.two_streams), of.two_streams.value),
         Cell(surely     ? "yes"
              : expected ? "expected, not if nothing overlaps"
                         : "no",
              expected),
         share_cell(of.one_of_step), share_cell(of.two_of_step)});
  }
  return table;
}

Table strategy_numbers(const std::vector<Record>& records) {
  std::set<std::string> names;
  for (const Record& record : records)
    for (const auto& [name, value] : record.values) names.insert(name);
  Table table{{{"case", "case"}, {"form", "form"}, {"verdict", "verdict"}}, {}};
  for (const std::string& name : names) table.columns.push_back({name, name, true});
  for (const Record& record : records) {
    std::vector<Cell> row = {Cell(record.case_name), Cell(record.implementation),
                             reports::status_cell(record.verdict.status)};
    for (const std::string& name : names) {
      const auto found = record.values.find(name);
      row.push_back(found == record.values.end()
                        ? Cell()
                        : Cell(fmt::format("{}", found->second), found->second));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string strategy_summary(const st::StrategyOptions& options, const Outcomes& outcomes) {
  std::string text = fmt::format(
      "Recall@{}: of the {} tokens that score highest one by one, the share in the groups selected "
      "for {} tokens, or in the tail; {} planted sequences of {} tokens (seed {}), the last {} "
      "decoded one by one. Columns in x are shares of what the same form needs as it stands "
      "beside. "
      "Intervals: 95 %, bootstrap over sequences; gained is paired.\n",
      options.run.recall_k, options.run.recall_k, options.run.budget_tokens, options.sequences,
      options.tokens, options.seed, options.steps);
  if (!overlap_table(outcomes).rows.empty())
    text +=
        "A second stream hides what asks for neither bytes nor matrix units that the layer needs; "
        "expected: all but those, at most: nothing, where the device runs one after the other.\n";
  for (const st::Outcome& each : outcomes) {
    const auto [value, low, high] = each.difference;
    if (high < 0)
      text += fmt::format("{}, {}: recall falls by {:.3f}, the interval lies below 0.\n",
                          each.strategy, each.variant.name, -value);
    if (each.verdict.status != Status::passed)
      text += fmt::format("{}, {}: {}: {}\n", each.strategy, each.variant.name,
                          to_string(each.verdict.status), each.verdict.reason);
  }
  return text;
}

std::vector<reports::Attachment> strategy_sections(const st::StrategyOptions& options,
                                                   const Outcomes& outcomes) {
  std::vector<reports::Attachment> sections = {
      {"strategies", "Dynamic strategies: saved and paid", strategy_summary(options, outcomes),
       strategy_table(outcomes)},
      {"monitoring", "Monitoring",
       "Entropy of the weights in a group (1: a mean). Hits: steps whose selected pools were all "
       "of the present keys, with the present weights; article B wants more than 85 %, and less "
       "than 5 ms of pooling a step (predicted from declared work, on " +
           options.device + ").",
       monitoring_table(outcomes)}};
  const Table overlapped = overlap_table(outcomes);
  if (!overlapped.rows.empty())
    sections.push_back({"overlap", "A second stream",
                        "Pooling of form C beside the attention of its own layer, eight " +
                            options.device +
                            ": expected, between perfect overlap and none. Article C allows 5 %.",
                        overlapped});
  return sections;
}

}  // namespace indexpool::cli
