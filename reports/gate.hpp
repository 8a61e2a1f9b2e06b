// The gate: what a run says against what a checked-in baseline said. Pure functions of records.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::reports {

// Worse is larger, for each of them.
struct Counter {
  std::string_view key, name;  // in files, for people
  std::int64_t (*of)(const Traffic& traffic);
};
inline constexpr std::size_t counter_count = 10;
const std::array<Counter, counter_count>& counters();
using CounterValues = std::array<std::int64_t, counter_count>;

// One record: an operation of a problem by a kernel.
struct GateEntry {
  std::string problem;  // the record's case_name
  std::string op, kernel, target;
  Status status = Status::passed;
  std::optional<CounterValues> traffic;  // as counted; as declared where nothing counts

  // Not compared: for messages.
  std::string reason, repeat;
};

// One check of an operation, kernel and numeric mode, over all problems.
struct GateCheck {
  std::string op, kernel, target, mode, check;
  std::int64_t problems = 0;     // in which it compared something
  double worst = 0, median = 0;  // error over bound: of all problems, of the problems' worst
  std::int64_t elements = 0;     // compared, over all problems

  // Not compared: for messages.
  std::string worst_problem, repeat;
};

// What ptxas reports of a kernel's instances for one architecture (kernels/resources.json).
struct CompiledKernel {
  std::string kernel, architecture;
  std::int64_t instances = 0, registers = 0;  // the most of any instance
  std::int64_t static_shared_bytes = 0, spill_bytes = 0;
};
struct Resources {
  std::string toolkit;
  std::vector<CompiledKernel> kernels;
  std::string source;  // which table it is; not compared
};

// Of one class of mutants, or of "all": how many the check named for them kills. Equivalent ones
// do not count.
struct KillScore {
  std::string name;
  std::int64_t mutants = 0, killed = 0;
};

struct GateState {
  std::string suite;
  std::vector<GateEntry> entries;  // sorted
  std::vector<GateCheck> checks;   // sorted
  std::optional<Resources> resources;
  std::vector<KillScore> kills;
};

// Throws ConfigError when two records have the same problem, operation, kernel and target.
GateState gate_state(const std::string& suite, const std::vector<Record>& records);

// A JSON file, sorted, one thing a line, so that a diff shows what changed. Error over bound is
// kept to three digits. What is
// left out is 0, or "passed". parse throws ConfigError.
std::string baseline_text(const GateState& state);
GateState parse_baseline(std::string_view text, std::string_view where);
Resources parse_resources(std::string_view text, std::string_view where);
// What `indexpool mutants --out` writes as scores.json.
std::vector<KillScore> parse_kill_scores(std::string_view text, std::string_view where);

// Lines of `after` that `before` has not ("+ ...") and the other way round ("- ..."), in the order
// of the files, with a line that counts them. Empty when they are equal.
std::string baseline_diff(std::string_view before, std::string_view after);

// What of a run the finding is about.
enum class Aspect { verdicts, coverage, traffic, resources, kill_score, utilisation };
std::string_view to_string(Aspect aspect);

enum class Change { regression, fresh, improvement };

struct GateFinding {
  Aspect aspect = Aspect::verdicts;
  Change change = Change::regression;
  std::string op, kernel;
  std::string what;           // "sectors loaded", "bound", "registers", ...
  std::string before, after;  // values as text; empty where there was none
  std::string sentence;       // what, where, old and new value, what to do
  std::string reason;         // of the verdict behind it, which may name a source line
  std::string repeat;         // command line
};

struct Gate {
  std::vector<GateFinding> findings;        // regressions first, then new ones, then improvements
  std::map<Aspect, std::int64_t> compared;  // with the baseline; an aspect without any is absent
  std::vector<std::string> notes;           // what was not compared, and why; which tables
};

// Error over bound grows by this factor before the gate fails, and never below the floor: under one
// rounding of a chain of 1024 (the longest sum of a kernel has 256 terms) an error says nothing.
inline constexpr double utilisation_factor = 2, utilisation_floor = 0x1p-10;

Gate compare(const GateState& baseline, const GateState& now);
bool passed(const Gate& gate);

// A failed record per regression (a thousand of an aspect), a passed one per aspect without any, so
// that the other documents (JUnit, HTML) show the gate like everything else.
std::vector<Record> gate_records(const Gate& gate, const std::string& baseline,
                                 const std::string& repeat);

// Under 1 MiB, whatever the findings.
std::string gate_markdown(const Gate& gate, const std::string& baseline,
                          const std::string& command);
// For a terminal: regressions and what is new, `most` of each.
std::string gate_text(const Gate& gate, const std::string& baseline, std::size_t most);

}  // namespace indexpool::reports
