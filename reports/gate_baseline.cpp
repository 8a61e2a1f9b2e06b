// The baseline as a file: JSON, sorted, one thing a line.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/reports/gate.hpp"

namespace indexpool::reports {
namespace {

constexpr int baseline_format = 1;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string entry_line(const GateEntry& entry) {
  std::string line = fmt::format("{{\"problem\": {}, \"op\": {}, \"kernel\": {}, \"target\": {}",
                                 quoted(entry.problem), quoted(entry.op), quoted(entry.kernel),
                                 quoted(entry.target));
  if (entry.status != Status::passed) {
    line += fmt::format(", \"status\": \"{}\"", to_string(entry.status));
  }
  if (entry.traffic) line += fmt::format(", \"traffic\": [{}]", fmt::join(*entry.traffic, ", "));
  return line + "}";
}

// Three digits: more would make every line of a baseline change with the compiler.
std::string digits(double value) { return fmt::format("{:.3g}", value); }

std::string check_line(const GateCheck& check) {
  std::string line = fmt::format(
      "{{\"op\": {}, \"kernel\": {}, \"target\": {}, \"mode\": {}, \"check\": {}, \"problems\": {}",
      quoted(check.op), quoted(check.kernel), quoted(check.target), quoted(check.mode),
      quoted(check.check), check.problems);
  if (check.worst > 0) line += ", \"worst\": " + digits(check.worst);
  if (check.median > 0) line += ", \"median\": " + digits(check.median);
  return line + "}";
}

std::string kernel_line(const CompiledKernel& kernel) {
  return fmt::format(
      "{{\"kernel\": {}, \"architecture\": {}, \"instances\": {}, \"registers\": {}, "
      "\"static_shared_bytes\": {}, \"spill_bytes\": {}}}",
      quoted(kernel.kernel), quoted(kernel.architecture), kernel.instances, kernel.registers,
      kernel.static_shared_bytes, kernel.spill_bytes);
}

template <class T>
std::string list(const std::vector<T>& rows, std::string (*line)(const T&)) {
  std::string text = "[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    text += line(rows[i]);
  }
  return text + "\n]";
}

Status read_status(const JsonValue& value) {
  const std::optional<Status> status = status_from_name(value.text());
  if (!status) value.fail(fmt::format("found \"{}\", expected a status", value.text()));
  return *status;
}

GateEntry read_entry(const JsonValue& value) {
  const JsonObject object =
      value.object({"problem", "op", "kernel", "target"}, {"status", "traffic"});
  GateEntry entry;
  entry.problem = object["problem"].text();
  entry.op = object["op"].text();
  entry.kernel = object["kernel"].text();
  entry.target = object["target"].text();
  if (const auto status = object.find("status")) entry.status = read_status(*status);
  if (const auto traffic = object.find("traffic")) {
    const std::vector<JsonValue> numbers = traffic->array();
    if (numbers.size() != counter_count) {
      traffic->fail(fmt::format("found {} numbers, expected {}", numbers.size(), counter_count));
    }
    entry.traffic.emplace();
    for (std::size_t i = 0; i < counter_count; ++i) {
      (*entry.traffic)[i] = numbers[i].integer(0, most);
    }
  }
  return entry;
}

double read_utilisation(const JsonValue& value) {
  const double number = value.number();
  if (!(number >= 0)) value.fail("found a negative number, expected error over bound");
  return number;
}

GateCheck read_check(const JsonValue& value) {
  const JsonObject object =
      value.object({"op", "kernel", "target", "mode", "check", "problems"}, {"worst", "median"});
  GateCheck check;
  check.op = object["op"].text();
  check.kernel = object["kernel"].text();
  check.target = object["target"].text();
  check.mode = object["mode"].text();
  check.check = object["check"].text();
  check.problems = object["problems"].integer(1, most);
  if (const auto worst = object.find("worst")) check.worst = read_utilisation(*worst);
  if (const auto median = object.find("median")) check.median = read_utilisation(*median);
  return check;
}

// `registers` is one number in a baseline, the least and the most of all instances in a table.
CompiledKernel read_kernel(const JsonValue& value) {
  const JsonObject object = value.object(
      {"kernel", "architecture", "instances", "registers", "static_shared_bytes", "spill_bytes"});
  CompiledKernel kernel;
  kernel.kernel = object["kernel"].text();
  kernel.architecture = object["architecture"].text();
  kernel.instances = object["instances"].integer(0, most);
  const JsonValue registers = object["registers"];
  if (registers.is_array()) {
    const std::vector<JsonValue> range = registers.array();
    if (range.size() != 2) registers.fail("expected the least and the most of all instances");
    kernel.registers = range[1].integer(0, most);
  } else {
    kernel.registers = registers.integer(0, most);
  }
  kernel.static_shared_bytes = object["static_shared_bytes"].integer(0, most);
  kernel.spill_bytes = object["spill_bytes"].integer(0, most);
  return kernel;
}

Resources read_resources(const JsonValue& value) {
  const JsonObject object = value.object({"toolkit", "kernels"});
  Resources resources;
  resources.toolkit = object["toolkit"].text();
  for (const JsonValue& kernel : object["kernels"].array()) {
    resources.kernels.push_back(read_kernel(kernel));
  }
  return resources;
}

std::string kill_line(const KillScore& kills) {
  return fmt::format("{{\"class\": {}, \"mutants\": {}, \"killed\": {}}}", quoted(kills.name),
                     kills.mutants, kills.killed);
}

KillScore read_kills(const JsonValue& value) {
  const JsonObject object = value.object({"class", "mutants", "killed"});
  KillScore kills;
  kills.name = object["class"].text();
  kills.mutants = object["mutants"].integer(0, most);
  kills.killed = object["killed"].integer(0, kills.mutants);
  return kills;
}

}  // namespace

std::string baseline_text(const GateState& state) {
  std::vector<std::string> names;
  for (const Counter& counter : counters()) names.push_back(quoted(std::string(counter.key)));
  std::string text = fmt::format("{{\n\"format\": {},\n\"suite\": {},\n\"counters\": [{}],\n",
                                 baseline_format, quoted(state.suite), fmt::join(names, ", "));
  if (!state.kills.empty()) {
    text += "\"kill_scores\": " + list(state.kills, &kill_line) + ",\n";
  }
  if (state.resources) {
    text += fmt::format("\"resources\": {{\"toolkit\": {}, \"kernels\": ",
                        quoted(state.resources->toolkit));
    text += list(state.resources->kernels, &kernel_line) + "},\n";
  }
  text += "\"checks\": " + list(state.checks, &check_line) + ",\n";
  return text + "\"entries\": " + list(state.entries, &entry_line) + "\n}\n";
}

GateState parse_baseline(std::string_view text, std::string_view where) {
  const JsonValue root = parse_json(text, where);
  const JsonObject object = root.object({"format", "suite", "counters", "checks", "entries"},
                                        {"kill_scores", "resources"});
  object["format"].integer(baseline_format, baseline_format);
  const std::vector<JsonValue> names = object["counters"].array();
  for (std::size_t i = 0; i < std::max(names.size(), counter_count); ++i) {
    if (i < names.size() && i < counter_count && names[i].text() == counters()[i].key) continue;
    object["counters"].fail(
        "not the counters of this version; write the baseline anew with --update-baseline");
  }
  GateState state;
  state.suite = object["suite"].text();
  for (const JsonValue& check : object["checks"].array()) state.checks.push_back(read_check(check));
  for (const JsonValue& entry : object["entries"].array()) {
    state.entries.push_back(read_entry(entry));
  }
  if (const auto resources = object.find("resources")) state.resources = read_resources(*resources);
  if (const auto kills = object.find("kill_scores")) {
    for (const JsonValue& score : kills->array()) state.kills.push_back(read_kills(score));
  }
  return state;
}

Resources parse_resources(std::string_view text, std::string_view where) {
  Resources resources = read_resources(parse_json(text, where));
  resources.source = where;
  return resources;
}

std::vector<KillScore> parse_kill_scores(std::string_view text, std::string_view where) {
  std::vector<KillScore> scores;
  const JsonValue root = parse_json(text, where);
  for (const JsonValue& value : root.array()) {
    const JsonObject object = value.object(
        {"class", "mutants", "equivalent", "killed_by_its_check", "killed", "percent"});
    KillScore score;
    score.name = object["class"].text();
    const std::int64_t all = object["mutants"].integer(0, most);
    score.mutants = all - object["equivalent"].integer(0, all);
    score.killed = object["killed_by_its_check"].integer(0, all);
    scores.push_back(std::move(score));
  }
  if (scores.empty()) root.fail("no class of mutants in it");
  return scores;
}

}  // namespace indexpool::reports
