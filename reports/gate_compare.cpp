// Verdicts and the order of findings.
#include "indexpool/reports/gate_compare.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace indexpool::reports {
namespace {

bool broken(Status status) { return status == Status::failed || status == Status::error; }

GateFinding finding_of(const GateEntry& entry, Change change) {
  GateFinding finding;
  finding.change = change;
  finding.op = entry.op;
  finding.kernel = entry.kernel;
  finding.what = "verdict";
  finding.after = to_string(entry.status);
  finding.reason = entry.reason;
  finding.repeat = entry.repeat;
  return finding;
}

std::string because(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(" ({})", reason);
}

GateFinding worse(const GateEntry& before, const GateEntry& now) {
  GateFinding finding = finding_of(now, Change::regression);
  finding.before = to_string(before.status);
  finding.sentence = fmt::format("{}, {}: the verdict was {}, now it is {}{}", place_of(now),
                                 now.problem, finding.before, finding.after, because(now.reason));
  return finding;
}

GateFinding better(const GateEntry& before, const GateEntry& now) {
  GateFinding finding = worse(before, now);
  finding.change = Change::improvement;
  return finding;
}

GateFinding vanished(const GateEntry& before) {
  GateFinding finding = finding_of(before, Change::regression);
  finding.aspect = Aspect::coverage;
  finding.what = "record";
  std::swap(finding.before, finding.after);
  finding.sentence = fmt::format(
      "{}, {}: the baseline has a record ({}), this run has none; if it was removed on purpose, "
      "update the baseline",
      place_of(before), before.problem, finding.before);
  return finding;
}

GateFinding fresh(const GateEntry& now) {
  GateFinding finding = finding_of(now, broken(now.status) ? Change::regression : Change::fresh);
  if (!broken(now.status)) finding.aspect = Aspect::coverage;
  finding.sentence = fmt::format("{}, {}: not in the baseline, and its verdict is {}{}",
                                 place_of(now), now.problem, finding.after, because(now.reason));
  return finding;
}

}  // namespace

std::map<EntryKey, const GateEntry*> by_key(const std::vector<GateEntry>& entries) {
  std::map<EntryKey, const GateEntry*> map;
  for (const GateEntry& entry : entries) {
    map.emplace(EntryKey{entry.problem, entry.op, entry.kernel, entry.target}, &entry);
  }
  return map;
}

std::string place_of(const GateEntry& entry) {
  return fmt::format("{} / {} on {}", entry.op, entry.kernel, entry.target);
}

void compare_entries(const GateState& baseline, const GateState& now, Gate& gate) {
  const auto before = by_key(baseline.entries), after = by_key(now.entries);
  for (const auto& [key, entry] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      gate.findings.push_back(vanished(*entry));
      continue;
    }
    ++gate.compared[Aspect::verdicts];
    const Status was = entry->status, is = found->second->status;
    // A failure that the baseline had is a failure.
    if (broken(is) || (judged(was) && !judged(is))) {
      gate.findings.push_back(worse(*entry, *found->second));
    } else if (!judged(was) && judged(is)) {
      gate.findings.push_back(better(*entry, *found->second));
    }
  }
  for (const auto& [key, entry] : after) {
    if (!before.contains(key)) gate.findings.push_back(fresh(*entry));
  }
}

Gate compare(const GateState& baseline, const GateState& now) {
  Gate gate;
  compare_entries(baseline, now, gate);
  compare_checks(baseline, now, gate);
  compare_traffic(baseline, now, gate);
  compare_resources(baseline, now, gate);
  compare_kills(baseline, now, gate);
  std::stable_sort(gate.findings.begin(), gate.findings.end(),
                   [](const GateFinding& a, const GateFinding& b) {
                     return std::tie(a.change, a.aspect) < std::tie(b.change, b.aspect);
                   });
  return gate;
}

bool passed(const Gate& gate) {
  return std::none_of(gate.findings.begin(), gate.findings.end(), [](const GateFinding& finding) {
    return finding.change == Change::regression;
  });
}

std::string_view to_string(Aspect aspect) {
  switch (aspect) {
    case Aspect::verdicts:
      return "verdicts";
    case Aspect::coverage:
      return "coverage";
    case Aspect::traffic:
      return "traffic";
    case Aspect::resources:
      return "resources";
    case Aspect::kill_score:
      return "kill_score";
    case Aspect::utilisation:
      return "utilisation";
  }
  return "";
}

}  // namespace indexpool::reports
