// Checks that compare less than they did, and bounds that are used more than they were.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "indexpool/reports/gate_compare.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

using CheckKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;
CheckKey key(const GateCheck& check) {
  return {check.op, check.kernel, check.target, check.mode, check.check};
}

std::string name_of(const GateCheck& check) {
  return fmt::format("{} / {} on {}{}: check {}", check.op, check.kernel, check.target,
                     check.mode.empty() ? "" : ", mode " + check.mode, check.check);
}

GateFinding finding_of(const GateCheck& check, Aspect aspect, Change change) {
  GateFinding finding;
  finding.aspect = aspect;
  finding.change = change;
  finding.op = check.op;
  finding.kernel = check.kernel;
  finding.what = check.check;
  finding.repeat = check.repeat;
  return finding;
}

// Records that the baseline judged and this run does not, by operation, kernel and target: that a
// check has fewer problems because of them is said already.
std::map<CheckKey, std::int64_t> lost_records(const GateState& baseline, const GateState& now) {
  const auto after = by_key(now.entries);
  std::map<CheckKey, std::int64_t> lost;
  for (const GateEntry& entry : baseline.entries) {
    const auto found = after.find(EntryKey{entry.problem, entry.op, entry.kernel, entry.target});
    const bool gone = found == after.end() ||
                      (found->second->status != Status::failed && !judged(found->second->status));
    if (gone) ++lost[{entry.op, entry.kernel, entry.target, "", ""}];
  }
  return lost;
}

GateFinding shrunk(const GateCheck& before, std::int64_t problems) {
  GateFinding finding = finding_of(before, Aspect::coverage, Change::regression);
  finding.before = fmt::format("{} problems", before.problems);
  finding.after = fmt::format("{} problems", problems);
  finding.sentence = fmt::format(
      "{} compared something in {} problems of the baseline, now in {}; if that is meant, update "
      "the baseline",
      name_of(before), before.problems, problems);
  return finding;
}

void compare_utilisation(const GateCheck& before, const GateCheck& now, const char* which,
                         double was, double is, Gate& gate) {
  ++gate.compared[Aspect::utilisation];
  const bool grew = is >= utilisation_factor * std::max(was, utilisation_floor);
  const bool shrank = was >= utilisation_factor * std::max(is, utilisation_floor);
  if (!grew && !shrank) return;
  GateFinding finding =
      finding_of(now, Aspect::utilisation, grew ? Change::regression : Change::improvement);
  finding.before = format_utilisation(was);
  finding.after = format_utilisation(is);
  finding.sentence = fmt::format("{}: the {} error over bound was {}, now it is {}{}",
                                 name_of(before), which, finding.before, finding.after,
                                 is > was ? fmt::format(" (in {})", now.worst_problem) : "");
  gate.findings.push_back(std::move(finding));
}

// Of fewer problems the median is as noisy as the worst, and says the same.
constexpr std::int64_t enough_for_a_median = 5;

void compare_one(const GateCheck& before, const GateCheck& now, std::int64_t lost, Gate& gate) {
  ++gate.compared[Aspect::coverage];
  if (now.problems < before.problems - lost) gate.findings.push_back(shrunk(before, now.problems));
  const std::size_t findings = gate.findings.size();
  compare_utilisation(before, now, "worst", before.worst, now.worst, gate);
  if (gate.findings.size() > findings) return;
  if (std::min(before.problems, now.problems) < enough_for_a_median) return;
  compare_utilisation(before, now, "median", before.median, now.median, gate);
}

}  // namespace

void compare_checks(const GateState& baseline, const GateState& now, Gate& gate) {
  std::map<CheckKey, const GateCheck*> after;
  for (const GateCheck& check : now.checks) after.emplace(key(check), &check);
  const auto lost = lost_records(baseline, now);
  std::map<CheckKey, bool> known;
  for (const GateCheck& check : baseline.checks) {
    known[key(check)] = true;
    const auto gone = lost.find({check.op, check.kernel, check.target, "", ""});
    const std::int64_t excused = gone == lost.end() ? 0 : gone->second;
    const auto found = after.find(key(check));
    if (found != after.end()) {
      compare_one(check, *found->second, excused, gate);
    } else if (excused < check.problems) {
      gate.findings.push_back(shrunk(check, 0));
    }
  }
  for (const GateCheck& check : now.checks) {
    if (known.contains(key(check))) continue;
    GateFinding finding = finding_of(check, Aspect::coverage, Change::fresh);
    finding.after = format_utilisation(check.worst);
    finding.sentence =
        fmt::format("{}: not in the baseline; {} problems, worst error over bound {}",
                    name_of(check), check.problems, finding.after);
    gate.findings.push_back(std::move(finding));
  }
}

}  // namespace indexpool::reports
