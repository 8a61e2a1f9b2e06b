// What kernels cost: counted traffic, compiled resources; and how many mutants the checks kill.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "indexpool/reports/gate_compare.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

// One counter of a kernel in all problems where it moved one way.
struct Moved {
  std::int64_t problems = 0, before = 0, after = 0;  // of the problem where it moved most
  const GateEntry* where = nullptr;
};

double ratio(std::int64_t after, std::int64_t before) {
  return static_cast<double>(after) / static_cast<double>(std::max<std::int64_t>(before, 1));
}

void note(Moved& moved, const GateEntry& entry, std::int64_t before, std::int64_t after) {
  const bool further = after > before ? ratio(after, before) > ratio(moved.after, moved.before)
                                      : ratio(after, before) < ratio(moved.after, moved.before);
  moved.problems += 1;
  if (moved.where != nullptr && !further) return;
  moved.where = &entry;
  moved.before = before;
  moved.after = after;
}

GateFinding traffic_finding(const Moved& moved, std::size_t counter, std::int64_t compared) {
  const GateEntry& entry = *moved.where;
  GateFinding finding;
  finding.aspect = Aspect::traffic;
  finding.change = moved.after > moved.before ? Change::regression : Change::improvement;
  finding.op = entry.op;
  finding.kernel = entry.kernel;
  finding.what = counters()[counter].name;
  finding.before = format_count(moved.before);
  finding.after = format_count(moved.after);
  finding.repeat = entry.repeat;
  finding.sentence =
      fmt::format("{}: {} {} in {} of {} problems; the most in {}: {}, now {}", place_of(entry),
                  finding.what, moved.after > moved.before ? "rose" : "fell", moved.problems,
                  compared, entry.problem, finding.before, finding.after);
  return finding;
}

GateFinding uncounted(const GateEntry& entry) {
  GateFinding finding;
  finding.aspect = Aspect::traffic;
  finding.op = entry.op;
  finding.kernel = entry.kernel;
  finding.what = "counters";
  finding.before = "counted";
  finding.after = "not counted";
  finding.repeat = entry.repeat;
  finding.sentence =
      fmt::format("{}, {}: the baseline has its traffic, this run counted and declared none",
                  place_of(entry), entry.problem);
  return finding;
}

struct Cost {
  const char* name;
  std::int64_t CompiledKernel::*value;
};
constexpr Cost costs[] = {{"registers", &CompiledKernel::registers},
                          {"static shared bytes", &CompiledKernel::static_shared_bytes},
                          {"spilled bytes", &CompiledKernel::spill_bytes}};

GateFinding resource_finding(const CompiledKernel& kernel, const Cost& cost, std::int64_t before,
                             std::int64_t after, const std::string& table) {
  GateFinding finding;
  finding.aspect = Aspect::resources;
  finding.change = after > before ? Change::regression : Change::improvement;
  finding.kernel = kernel.kernel;
  finding.what = cost.name;
  finding.before = format_count(before);
  finding.after = format_count(after);
  finding.sentence =
      fmt::format("{} for {}: {} were {}, now {} (table: {})", kernel.kernel, kernel.architecture,
                  cost.name, finding.before, finding.after, table);
  return finding;
}

GateFinding kernel_finding(const CompiledKernel& kernel, Change change, const std::string& table) {
  GateFinding finding;
  finding.aspect = Aspect::resources;
  finding.change = change;
  finding.kernel = kernel.kernel;
  finding.what = "compiled kernel";
  finding.sentence = fmt::format("{} for {}: {}in the baseline{} (table: {})", kernel.kernel,
                                 kernel.architecture, change == Change::fresh ? "not " : "",
                                 change == Change::fresh ? "" : ", but no longer compiled", table);
  return finding;
}

const CompiledKernel* find(const Resources& resources, const CompiledKernel& wanted) {
  const auto found = std::find_if(
      resources.kernels.begin(), resources.kernels.end(), [&](const CompiledKernel& kernel) {
        return kernel.kernel == wanted.kernel && kernel.architecture == wanted.architecture;
      });
  return found == resources.kernels.end() ? nullptr : &*found;
}

// Registers hold for one toolkit; that nothing may spill holds for all.
void compare_kernel(const CompiledKernel& before, const CompiledKernel& now, bool same_toolkit,
                    const std::string& table, Gate& gate) {
  ++gate.compared[Aspect::resources];
  for (const Cost& cost : costs) {
    if (!same_toolkit && cost.value != &CompiledKernel::spill_bytes) continue;
    const std::int64_t was = before.*cost.value, is = now.*cost.value;
    if (was != is) gate.findings.push_back(resource_finding(now, cost, was, is, table));
  }
}

const KillScore* find(const std::vector<KillScore>& scores, const std::string& name) {
  const auto found = std::find_if(scores.begin(), scores.end(),
                                  [&](const KillScore& score) { return score.name == name; });
  return found == scores.end() ? nullptr : &*found;
}

std::string text_of(const KillScore* score) {
  return score == nullptr ? "" : fmt::format("{} of {}", score->killed, score->mutants);
}

// Shares by cross-multiplication; fewer mutants are no better score.
Change change_of(const KillScore* was, const KillScore* is) {
  if (was == nullptr) return Change::fresh;
  const bool worse = is == nullptr || is->mutants < was->mutants ||
                     is->killed * was->mutants < was->killed * is->mutants;
  return worse ? Change::regression : Change::improvement;
}

GateFinding kill_finding(const KillScore* was, const KillScore* is) {
  GateFinding finding;
  finding.aspect = Aspect::kill_score;
  finding.change = change_of(was, is);
  finding.what = "mutants: " + (was != nullptr ? was : is)->name;
  finding.before = text_of(was);
  finding.after = text_of(is);
  finding.repeat = "indexpool mutants";
  finding.sentence = fmt::format(
      "{}: {}, {}", finding.what,
      was == nullptr ? "not in the baseline" : finding.before + " were killed by the named check",
      is == nullptr ? "now the class is gone" : "now " + finding.after);
  return finding;
}

}  // namespace

void compare_traffic(const GateState& baseline, const GateState& now, Gate& gate) {
  using Group = std::tuple<std::string, std::string, std::string>;
  struct Sum {
    std::int64_t compared = 0;
    std::array<Moved, counter_count> worse, better;
  };
  std::map<Group, Sum> sums;
  const auto before = by_key(baseline.entries);
  for (const GateEntry& entry : now.entries) {
    const auto old = before.find(EntryKey{entry.problem, entry.op, entry.kernel, entry.target});
    if (old == before.end() || !old->second->traffic) continue;
    if (!entry.traffic) {
      if (judged(entry.status)) gate.findings.push_back(uncounted(entry));
      continue;
    }
    Sum& sum = sums[{entry.op, entry.kernel, entry.target}];
    sum.compared += 1;
    for (std::size_t i = 0; i < counter_count; ++i) {
      const std::int64_t was = (*old->second->traffic)[i], is = (*entry.traffic)[i];
      if (was != is) note(is > was ? sum.worse[i] : sum.better[i], entry, was, is);
    }
  }
  for (const auto& [unused, sum] : sums) {
    gate.compared[Aspect::traffic] += sum.compared;
    for (std::size_t i = 0; i < counter_count; ++i) {
      for (const Moved* moved : {&sum.worse[i], &sum.better[i]}) {
        if (moved->problems == 0) continue;
        gate.findings.push_back(traffic_finding(*moved, i, sum.compared));
      }
    }
  }
}

void compare_resources(const GateState& baseline, const GateState& now, Gate& gate) {
  if (!baseline.resources && !now.resources) return;
  if (!now.resources) {
    gate.notes.emplace_back("registers and shared memory were not compared: no table was given");
    return;
  }
  const Resources& after = *now.resources;
  gate.notes.push_back(fmt::format("registers, spills and shared memory are of {}", after.source));
  if (!baseline.resources) {
    gate.notes.emplace_back("the baseline has no registers and shared memory to compare with");
    return;
  }
  const Resources& before = *baseline.resources;
  const bool same_toolkit = before.toolkit == after.toolkit;
  if (!same_toolkit) {
    gate.notes.push_back(
        fmt::format("only spills were compared: the baseline is of toolkit {}, the table of {}",
                    before.toolkit, after.toolkit));
  }
  for (const CompiledKernel& kernel : before.kernels) {
    const CompiledKernel* found = find(after, kernel);
    if (found != nullptr) {
      compare_kernel(kernel, *found, same_toolkit, after.source, gate);
    } else {
      gate.findings.push_back(kernel_finding(kernel, Change::regression, after.source));
    }
  }
  for (const CompiledKernel& kernel : after.kernels) {
    if (find(before, kernel) != nullptr) continue;
    gate.findings.push_back(kernel_finding(kernel, Change::fresh, after.source));
  }
}

void compare_kills(const GateState& baseline, const GateState& now, Gate& gate) {
  if (baseline.kills.empty() && now.kills.empty()) return;
  if (now.kills.empty()) {
    gate.notes.emplace_back("the kill score was not compared: give it with --mutants scores.json");
    return;
  }
  for (const KillScore& was : baseline.kills) {
    const KillScore* is = find(now.kills, was.name);
    if (is == nullptr || is->mutants != was.mutants || is->killed != was.killed) {
      gate.findings.push_back(kill_finding(&was, is));
    }
    ++gate.compared[Aspect::kill_score];
  }
  for (const KillScore& is : now.kills) {
    if (find(baseline.kills, is.name) != nullptr) continue;
    gate.findings.push_back(kill_finding(nullptr, &is));
  }
}

}  // namespace indexpool::reports
