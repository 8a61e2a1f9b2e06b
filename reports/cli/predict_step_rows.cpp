// Rows of a whole step: groups of operations, and each operation term by term.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/reports/cli/constant_kinds.hpp"
#include "indexpool/reports/cli/predict_tables.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::Cell;

Cell time_cell(Seconds time) { return {reports::format_seconds(time.value), time.value}; }

// What a table adds up: a group of operations, or one kernel of the indexer.
struct Group {
  std::string name, kernel;
  std::int64_t runs = 0;
  Seconds time, low, high;
  double bytes = 0;
  Seconds longest;
  std::string limit;
};

bool is_kernel(const step::OperationForecast& each) {
  return !each.kernel.empty() && each.group == "indexer" && each.source == "declared by the kernel";
}

std::vector<Group> groups_of(const step::StepForecast& forecast) {
  std::vector<Group> groups;
  for (const step::OperationForecast& each : forecast.operations) {
    if (!each.refusal.empty()) continue;
    const std::string name = is_kernel(each) ? "indexer: " + each.name : each.group;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& other) { return other.name == name; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), Group{name, "", 0, {}, {}, {}, 0, {}, ""});
    }
    if (is_kernel(each)) group->kernel = each.kernel;
    group->runs += each.count;
    group->time += each.time;
    group->low += each.low;
    group->high += each.high;
    group->bytes +=
        static_cast<double>(each.count) * static_cast<double>(each.prediction.hbm_bytes.value);
    if (each.time >= group->longest) {
      group->longest = each.time;
      group->limit = each.prediction.bound_by;
    }
  }
  return groups;
}

Cell bytes_cell(double bytes) {
  constexpr double limit = 0x1p63;
  const std::int64_t whole =
      bytes < limit ? static_cast<std::int64_t>(bytes) : std::numeric_limits<std::int64_t>::max();
  return {reports::format_bytes(bytes), whole};
}

Cell share_cell(Seconds part, Seconds whole) {
  const double share = whole.value > 0 ? part.value / whole.value : 0;
  return {reports::format_percent(share), share};
}

}  // namespace

PredictTables::Row& PredictTables::add_row(std::int64_t tokens, const std::string& phase,
                                           const char* kind) {
  Row& row = rows_.emplace_back();
  row.tokens = tokens;
  row.phase = phase;
  row.kind = kind;
  return row;
}

void PredictTables::add_operation(std::int64_t tokens, const std::string& phase,
                                  const step::OperationForecast& operation,
                                  const DeviceSpec& device) {
  Row& row = add_row(tokens, phase, "operation");
  row.what = operation.group + ": " + operation.name;
  row.kernel = operation.kernel;
  row.runs = operation.count;
  row.bytes = bytes_cell(static_cast<double>(operation.prediction.hbm_bytes.value));
  row.time = time_cell(operation.prediction.time);
  row.low = time_cell(operation.prediction.low);
  row.high = time_cell(operation.prediction.high);
  row.limit = Cell(operation.prediction.bound_by);
  row.formula = operation.detail;
  if (operation.lane == step::Lane::side) row.formula += "; on the second stream";
  row.source = operation.source;
  const bool fitted = operation.source.starts_with("measured");
  for (const CostTerm& term : operation.prediction.terms) {
    Row& part = add_row(tokens, phase, "term");
    part.what = "  " + term.name;
    part.time = time_cell(term.time);
    part.low = time_cell(term.low);
    part.high = time_cell(term.high);
    part.formula = term.formula;
    part.source = term.source;
    part.constants = constant_kinds(term, device, fitted);
  }
}

// What makes each column's sum the step's.
void PredictTables::add_hidden(std::int64_t tokens, const std::string& phase,
                               const step::StepForecast& forecast) {
  Seconds low, high;
  for (const step::OperationForecast& each : forecast.operations) {
    low += each.low;
    high += each.high;
  }
  const auto saved = [](Seconds sum, Seconds whole) {
    const Seconds time = whole - sum;
    if (std::abs(time.value) < 1e-9 * sum.value) return time_cell(Seconds(0));
    return Cell(fmt::format("-{}", reports::format_seconds(-time.value)), time.value);
  };
  Row& row = add_row(tokens, phase, "time");
  row.what = "hidden by a second stream";
  row.time = saved(forecast.time + forecast.hidden, forecast.time);
  row.low = saved(low, forecast.low);
  row.high = saved(high, forecast.high);
  row.time_share = share_cell(forecast.hidden * -1.0, forecast.time);
  row.formula =
      "two lanes run beside each other, no faster than what both ask of HBM and matrix units; "
      "at the slowest one after the other";
}

void PredictTables::add_step(std::int64_t tokens, const std::string& phase,
                             const step::StepForecast& forecast, const DeviceSpec& device,
                             bool explain) {
  for (const Group& group : groups_of(forecast)) {
    Row& row = add_row(tokens, phase, "time");
    row.what = group.name;
    row.kernel = group.kernel;
    row.runs = group.runs;
    row.bytes = bytes_cell(group.bytes);
    row.time = time_cell(group.time);
    row.low = time_cell(group.low);
    row.high = time_cell(group.high);
    row.time_share = share_cell(group.time, forecast.time);
    row.limit = Cell(group.limit);
  }
  for (const step::OperationForecast& each : forecast.operations) {
    if (each.refusal.empty()) continue;
    Row& row = add_row(tokens, phase, "time");
    row.what = "indexer: " + each.name;
    row.limit = Cell("no kernel: " + each.refusal);
  }
  if (forecast.hidden.value > 0) add_hidden(tokens, phase, forecast);
  Row& total = add_row(tokens, phase, "time");
  total.what = forecast.complete ? "whole step" : "whole step, without the indexer's kernels";
  total.bytes = bytes_cell(static_cast<double>(forecast.hbm_bytes.value));
  total.time = time_cell(forecast.time);
  total.low = time_cell(forecast.low);
  total.high = time_cell(forecast.high);
  total.rate = {fmt::format("{:.4g}", forecast.tokens_per_s()), forecast.tokens_per_s()};
  total.limit = Cell(forecast.bound_by);
  total.formula = fmt::format("{} rows; lows add and highs add, as if all constants erred alike",
                              forecast.size.rows());
  if (!explain) return;
  for (const step::OperationForecast& each : forecast.operations) {
    if (each.refusal.empty()) add_operation(tokens, phase, each, device);
  }
}

}  // namespace indexpool::cli
