#include <fmt/format.h>

#include "indexpool/verify/strategies/strategies.hpp"

namespace indexpool::verify::strategies {
namespace {

void put_interval(Record& record, const std::string& name,
                  const reference::training::Interval& of) {
  record.values[name] = of.value;
  record.values[name + "_low"] = of.low;
  record.values[name + "_high"] = of.high;
}

void put_counts(Record& record, const std::string& prefix, const Counts& of,
                const Monitor& monitor) {
  const auto put = [&](const char* name, std::int64_t value) {
    record.values[prefix + name] = static_cast<double>(value);
  };
  put("pools", of.pools);
  put("weight_sets", of.weight_sets);
  put("launches", of.launches);
  put("written_bytes", of.bytes_written);
  put("stored_bytes", of.bytes_stored);
  record.values[prefix + "read_bytes_per_step"] = read_per_step(of, monitor);
}

void put_monitor(Record& record, const Monitor& of) {
  record.values["weight_entropy"] = weight_entropy(of);
  record.values["hit_rate"] = hit_rate(of);
  record.values["normalisation_violations"] = static_cast<double>(of.normalisation_violations);
  record.values["checksum_failures"] = static_cast<double>(of.checksum_failures);
  const double steps = static_cast<double>(of.steps);
  record.values["predicted_pooling_s"] = latency_per_step_s(of);
  record.values["predicted_pooling_low_s"] = steps > 0 ? of.latency_low_s / steps : 0;
  record.values["predicted_pooling_high_s"] = steps > 0 ? of.latency_high_s / steps : 0;
}

void put_overlap(Record& record, const Overlap& of) {
  const auto put = [&](const std::string& name, const Overhead& overhead) {
    record.values[name] = overhead.value;
    record.values[name + "_low"] = overhead.low;
    record.values[name + "_high"] = overhead.high;
  };
  put("one_stream_overhead", of.one_stream);
  put("two_streams_overhead", of.two_streams);
  record.values["one_stream_overhead_of_step"] = of.one_of_step;
  record.values["two_streams_overhead_of_step"] = of.two_of_step;
  record.values["allowed_overhead"] = published_overhead;
  record.values["layer_attention_s"] = of.layer.alone.time.value;
  record.values["layer_pooling_s"] = of.pooling.alone.time.value;
}

}  // namespace

std::vector<Record> records_of(const StrategyOptions& options,
                               const std::vector<Outcome>& outcomes) {
  std::vector<Record> records;
  for (const Outcome& outcome : outcomes) {
    Record record;
    record.case_name = fmt::format("{}: {}", outcome.strategy, outcome.variant.name);
    record.op = "strategy";
    record.implementation = outcome.variant.policy;
    record.reference = "unpooled indexer, and the form with " + outcome.variant.beside;
    record.environment.target = "reference";
    record.seed = options.seed;
    record.repeat = options.repeat;
    record.verdict = outcome.verdict;
    put_interval(record, "recall", outcome.recall);
    put_interval(record, "recall_without", outcome.baseline_recall);
    put_interval(record, "recall_gained", outcome.difference);
    put_counts(record, "", outcome.counts, outcome.monitor);
    put_counts(record, "without_", outcome.baseline, outcome.baseline_monitor);
    put_monitor(record, outcome.monitor);
    record.values["recall_k"] = static_cast<double>(options.run.recall_k);
    record.values["budget_tokens"] = static_cast<double>(options.run.budget_tokens);
    record.values["sequences"] = static_cast<double>(outcome.sequences);
    if (outcome.staleness.compared > 0) {
      record.values["staleness_over_bound"] = outcome.staleness.utilisation;
      record.values["staleness_largest_change"] = outcome.staleness.largest_change;
    }
    if (outcome.overlap) put_overlap(record, *outcome.overlap);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace indexpool::verify::strategies
