// Records to what the gate compares.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/gate.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

std::optional<CounterValues> traffic_of(const Record& record) {
  const std::optional<Traffic>& traffic = record.counted ? record.counted : record.declared;
  if (!traffic) return std::nullopt;
  CounterValues values{};
  for (std::size_t i = 0; i < counter_count; ++i) values[i] = counters()[i].of(*traffic);
  return values;
}

GateEntry entry_of(const Record& record) {
  return {
      record.case_name,      record.op,          record.implementation, record.environment.target,
      record.verdict.status, traffic_of(record), record.verdict.reason, record.repeat};
}

auto key(const GateEntry& entry) {
  return std::tie(entry.problem, entry.op, entry.kernel, entry.target);
}

void refuse_twins(const std::vector<GateEntry>& sorted) {
  const auto twin =
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [](const GateEntry& a, const GateEntry& b) { return key(a) == key(b); });
  if (twin == sorted.end()) return;
  throw ConfigError(fmt::format(
      "two records of {} by {} on {} for the problem '{}'; the gate needs one: give each records "
      "file once",
      twin->op, twin->kernel, twin->target, twin->problem));
}

using CheckKey = std::tuple<int, std::string, std::string, std::string, std::string, std::string>;

struct Samples {
  GateCheck check;
  std::vector<double> worst;
};

void add(std::map<CheckKey, Samples>& groups, const Record& record, const Check& check) {
  const bool judged = check.status == Status::passed || check.status == Status::marginal ||
                      check.status == Status::failed;
  if (!judged || check.compared == 0) return;
  const std::string mode = record.problem ? record.problem->mode : "";
  const std::string& target = record.environment.target;
  Samples& samples = groups[{operation_rank(record.op), record.op, record.implementation, target,
                             mode, check.name}];
  GateCheck& sum = samples.check;
  sum.op = record.op, sum.kernel = record.implementation, sum.target = target;
  sum.mode = mode, sum.check = check.name;
  sum.problems += 1;
  sum.elements += check.compared;
  if (sum.worst_problem.empty() || check.utilisation > sum.worst) {
    sum.worst = check.utilisation;
    sum.worst_problem = record.case_name;
    sum.repeat = record.repeat;
  }
  samples.worst.push_back(check.utilisation);
}

// The lower of the two in the middle: a value that occurred.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

const std::array<Counter, counter_count>& counters() {
  static constexpr std::array<Counter, counter_count> table = {
      {{"global_load_bytes", "bytes loaded", [](const Traffic& t) { return t.global_load.value; }},
       {"global_store_bytes", "bytes stored",
        [](const Traffic& t) { return t.global_store.value; }},
       {"load_sectors", "sectors loaded", [](const Traffic& t) { return t.load_sectors; }},
       {"store_sectors", "sectors stored", [](const Traffic& t) { return t.store_sectors; }},
       {"shared_load_bytes", "shared bytes loaded",
        [](const Traffic& t) { return t.shared_load.value; }},
       {"shared_store_bytes", "shared bytes stored",
        [](const Traffic& t) { return t.shared_store.value; }},
       {"shared_wavefronts", "shared-memory wavefronts (bank conflicts included)",
        [](const Traffic& t) { return t.shared_wavefronts; }},
       {"matrix_ops", "matrix operations", [](const Traffic& t) { return t.matrix_ops; }},
       {"block_barriers", "block barriers", [](const Traffic& t) { return t.block_barriers; }},
       {"shuffles", "shuffles", [](const Traffic& t) { return t.shuffles; }}}};
  return table;
}

GateState gate_state(const std::string& suite, const std::vector<Record>& records) {
  GateState state;
  state.suite = suite;
  std::map<CheckKey, Samples> groups;
  for (const Record& record : records) {
    state.entries.push_back(entry_of(record));
    for (const Check& check : record.verdict.checks) add(groups, record, check);
  }
  std::stable_sort(state.entries.begin(), state.entries.end(),
                   [](const GateEntry& a, const GateEntry& b) { return key(a) < key(b); });
  refuse_twins(state.entries);
  for (auto& [unused, samples] : groups) {
    samples.check.median = median(std::move(samples.worst));
    state.checks.push_back(std::move(samples.check));
  }
  return state;
}

}  // namespace indexpool::reports
