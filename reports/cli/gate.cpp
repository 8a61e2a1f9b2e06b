// indexpool gate: a run against a checked-in baseline, for CI.
#include "indexpool/reports/gate.hpp"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/gate_inputs.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/sarif.hpp"
#include "indexpool/reports/table.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  std::string baseline, suite, target = "simt", out, mutants, resources, source, root = ".";
  std::vector<std::string> records;
  bool update = false, annotate = false;
  FormatOption format;
};

void check_options(const GateOptions& options, reports::Format format) {
  require_known("target", options.target, {"simt", "cuda"});
  if (!options.records.empty() && !options.suite.empty()) {
    throw ConfigError(
        "--suite and --records exclude each other: records are of a run that is over");
  }
  if (options.annotate && format != reports::Format::table) {
    throw ConfigError("--annotations are lines on stdout: they go with --format table");
  }
  if (options.target == "cuda") kernels::make_cuda_target();  // absent: before anything runs
}

std::string suite_of(const GateOptions& options) {
  if (!options.records.empty()) return "records";
  return options.suite.empty() ? "ci" : options.suite;
}

std::string command_of(const GateOptions& options) {
  std::string command = "indexpool gate --baseline " + shell_quoted(options.baseline);
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", name, shell_quoted(value));
  };
  if (!options.records.empty()) command += " --records";
  for (const std::string& file : options.records) command += ' ' + shell_quoted(file);
  option("--suite", options.suite);
  if (options.target != "simt") option("--target", options.target);
  option("--mutants", options.mutants);
  option("--resources", options.resources);
  option("--source", options.source);
  return command;
}

std::vector<Record> run_suite(const GateOptions& options) {
  const Suite suite = verify::load_suite(suite_of(options));
  verify::Options how;
  how.target = options.target;
  Progress progress;
  std::vector<Record> records;
  for (std::size_t i = 0; i < suite.problems.size(); ++i) {
    const Problem& problem = suite.problems[i];
    progress.show(fmt::format("{}/{} {}", i + 1, suite.problems.size(), describe(problem)));
    how.repeat = repeat_line(problem);
    if (options.target != "simt") how.repeat += " --target " + options.target;
    for (Record& record : verify::verify_problem(problem, how)) {
      record.environment.version = INDEXPOOL_VERSION;
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<Record> records_of(const GateOptions& options) {
  if (options.records.empty()) return run_suite(options);
  std::vector<Record> records;
  for (const std::string& file : options.records) {
    for (Record& record : read_records(file)) records.push_back(std::move(record));
  }
  return records;
}

// Compiled kernels belong to our own suites, unless a table is given.
reports::GateState state_of(const GateOptions& options, const std::vector<Record>& records) {
  reports::GateState state = reports::gate_state(suite_of(options), records);
  if (options.records.empty() || !options.resources.empty()) {
    state.resources = load_resources(options.resources);
  }
  if (!options.mutants.empty()) state.kills = load_kill_scores(options.mutants);
  return state;
}

reports::GateState load_baseline(const GateOptions& options, std::string& text) {
  std::error_code ignored;
  if (!fs::exists(options.baseline, ignored)) {
    if (options.update) {
      reports::GateState none;
      none.suite = suite_of(options);
      return none;
    }
    throw ConfigError(
        fmt::format("there is no baseline {}; --update-baseline writes it", options.baseline));
  }
  text = read_whole(options.baseline, "the baseline");
  reports::GateState baseline = reports::parse_baseline(text, options.baseline);
  if (baseline.suite != suite_of(options)) {
    throw ConfigError(
        fmt::format("{}: is of '{}', this run of '{}'; give the same --suite or "
                    "another baseline",
                    options.baseline, baseline.suite, suite_of(options)));
  }
  return baseline;
}

bool any_broken(const std::vector<Record>& records) {
  const Status status = overall_status(records);
  return status == Status::failed || status == Status::error;
}

// What was not given this time stays as it was.
int update(const GateOptions& options, const std::string& before, const reports::GateState& old,
           reports::GateState now, const std::vector<Record>& records) {
  if (now.kills.empty()) now.kills = old.kills;
  if (!now.resources) now.resources = old.resources;
  const std::string after = reports::baseline_text(now);
  const std::string diff = reports::baseline_diff(before, after);
  print(diff.empty() ? "the baseline is up to date\n" : diff);
  if (any_broken(records)) {
    note(fmt::format("{} was not written: a verdict failed, and a failure is no baseline",
                     options.baseline));
    return exit_failed;
  }
  if (before == after) return exit_passed;
  write_text(options.baseline, after);
  note("written: " + options.baseline);
  return exit_passed;
}

std::vector<reports::Finding> findings_of(const GateOptions& options, const reports::Gate& gate,
                                          const std::vector<Record>& records) {
  const reports::Sources sources = kernel_sources(fs::absolute(options.root), options.source);
  std::vector<reports::Finding> findings = reports::record_findings(records, sources);
  for (reports::Finding& finding : reports::gate_findings(gate, sources)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

void write_documents(const GateOptions& options, const reports::Gate& gate,
                     const std::vector<reports::Finding>& findings,
                     const std::vector<Record>& records) {
  const fs::path folder = options.out;
  const std::string command = command_of(options);
  reports::ReportInput input;
  input.title = "Gate: " + suite_of(options) + " against " + options.baseline;
  input.command = command;
  input.records = reports::gate_records(gate, options.baseline, command);
  input.records.insert(input.records.end(), records.begin(), records.end());
  reports::write_report(folder, input);
  write_records(folder / "records.jsonl", records);  // of the run alone, to give back to --records
  write_text(folder / "gate.md", reports::gate_markdown(gate, options.baseline, command));
  write_text(folder / "gate.sarif", reports::sarif(findings, INDEXPOOL_VERSION, command));
  note("report: " + options.out + "/gate.md, gate.sarif, junit.xml, report.html");
}

reports::Table finding_table(const reports::Gate& gate) {
  static constexpr const char* changes[] = {"worse", "new", "better"};
  reports::Table table{{{"change", "change"},
                        {"aspect", "aspect"},
                        {"op", "operation"},
                        {"kernel", "kernel"},
                        {"what", "what"},
                        {"before", "was", true},
                        {"after", "is", true},
                        {"sentence", "sentence"},
                        {"repeat", "repeat"}},
                       {}};
  for (const reports::GateFinding& finding : gate.findings) {
    table.rows.push_back({std::string(changes[static_cast<int>(finding.change)]),
                          std::string(to_string(finding.aspect)), finding.op, finding.kernel,
                          finding.what, finding.before, finding.after, finding.sentence,
                          finding.repeat});
  }
  return table;
}

int exit_of(const reports::Gate& gate, const std::vector<Record>& records) {
  if (!reports::passed(gate) || any_broken(records)) return exit_failed;
  return gate.compared.empty() ? exit_untrusted : exit_passed;
}

int gate_with(const GateOptions& options) {
  constexpr std::size_t most_findings = 20;
  const reports::Format format = options.format.parsed();
  check_options(options, format);
  std::string before;
  const reports::GateState baseline = load_baseline(options, before);
  if (!options.mutants.empty()) load_kill_scores(options.mutants);  // bad: before anything runs
  const std::vector<Record> records = records_of(options);
  const reports::GateState now = state_of(options, records);
  const reports::Gate gate = reports::compare(baseline, now);
  const std::vector<reports::Finding> findings = findings_of(options, gate, records);
  if (!options.out.empty()) write_documents(options, gate, findings, records);
  if (options.update) return update(options, before, baseline, now, records);
  print(format == reports::Format::table ? reports::gate_text(gate, options.baseline, most_findings)
        : format == reports::Format::md
            ? reports::gate_markdown(gate, options.baseline, command_of(options))
            : reports::render(finding_table(gate), format));
  if (options.annotate) print(reports::annotations(findings));
  return exit_of(gate, records);
}

std::function<int()> declare_gate(CLI::App& app) {
  auto options = std::make_shared<GateOptions>();
  app.add_option("--baseline", options->baseline, "what a run is compared with (JSON)")->required();
  app.add_option("--suite", options->suite, "smoke, ci (default), full, or a JSON file");
  app.add_option("--records", options->records,
                 "records of a run that is over (JSON Lines), instead of a suite")
      ->expected(1, -1);
  app.add_option("--target", options->target, "simt or cuda")->capture_default_str();
  app.add_option("--mutants", options->mutants,
                 "kill scores: scores.json of indexpool mutants --out");
  app.add_option("--resources", options->resources,
                 "registers, spills and shared memory as compiled (default: this build's, else "
                 "kernels/resources.json)");
  app.add_option("--source", options->source, "file that findings about other kernels point to");
  app.add_option("--root", options->root, "what paths in findings are relative to")
      ->capture_default_str();
  app.add_option("--out", options->out, "folder for gate.md, gate.sarif, junit.xml, report.html");
  app.add_flag("--update-baseline", options->update,
               "show the difference, then write the baseline");
  app.add_flag("--annotations", options->annotate,
               "print the findings as workflow commands of GitHub Actions as well");
  options->format.declare(app);
  return [options] { return gate_with(*options); };
}

}  // namespace

extern const Command gate_command = {
    "gate", "A run against a checked-in baseline: verdicts, traffic, registers, bounds, mutants",
    "  indexpool gate --baseline reports/baselines/ci.json --out gate\n"
    "  indexpool gate --baseline reports/baselines/ci.json --update-baseline\n"
    "  indexpool gate --baseline mine.json --records results/records.jsonl --source my_kernel.py\n",
    declare_gate};

}  // namespace indexpool::cli
