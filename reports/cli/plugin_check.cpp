#include "indexpool/reports/cli/plugin_check.hpp"

#include <functional>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/case.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/verify/plugin/plugin.hpp"

namespace indexpool::cli {
namespace {

constexpr const char* group = "A plugin";

// What one repeat line repeats.
struct Job {
  std::string name, repeat;
  std::function<std::vector<Record>(const verify::Plugin&, const verify::Options&)> run;
};

// "indexpool check --plugin libmine.so", with the limits that were given.
std::string command_words(const PluginCheck& check) {
  std::string words = "indexpool check --plugin " + shell_quoted(check.library);
  if (check.time_limit_s > 0) words += fmt::format(" --time-limit {}", check.time_limit_s);
  if (!check.memory_limit.empty()) words += " --memory-limit " + shell_quoted(check.memory_limit);
  return words;
}

// A plugin's operations get all tokens at once, whatever schedule a suite has in mind.
Job problem_job(const PluginCheck& check, Problem problem) {
  problem.schedule = {};
  const std::string verify_words = "indexpool verify";
  return {describe(problem),
          command_words(check) + repeat_line(problem).substr(verify_words.size()),
          [problem](const verify::Plugin& plugin, const verify::Options& how) {
            return verify::check_plugin_problem(plugin, problem, how);
          }};
}

// Files are read and checked here, before anything runs or is written.
Job case_job(const PluginCheck& check, const std::string& file) {
  const auto test_case = std::make_shared<const Case>(read_case(file));
  return {test_case->name, command_words(check) + " --case " + shell_quoted(file),
          [test_case](const verify::Plugin& plugin, const verify::Options& how) {
            return verify::check_plugin(plugin, *test_case, how);
          }};
}

std::string suite_name(const PluginCheck& check) {
  return check.suite.empty() ? "smoke" : check.suite;
}

std::vector<Job> jobs_of(const PluginCheck& check) {
  std::vector<Job> jobs;
  for (const std::string& file : check.cases) jobs.push_back(case_job(check, file));
  if (!jobs.empty()) return jobs;
  if (check.problem.any_shape()) return {problem_job(check, check.problem.parsed())};
  for (const Problem& problem : verify::load_shipped_suite(suite_name(check)).problems) {
    jobs.push_back(problem_job(check, problem));
  }
  return jobs;
}

std::string command_of(const PluginCheck& check, const std::vector<Job>& jobs) {
  std::string command = command_words(check);
  if (!check.cases.empty()) {
    command += " --case";
    for (const std::string& file : check.cases) command += ' ' + shell_quoted(file);
    return command;
  }
  return check.problem.any_shape() ? jobs.front().repeat
                                   : command + " --suite " + shell_quoted(suite_name(check));
}

verify::PluginLimits limits_of(const PluginCheck& check) {
  verify::PluginLimits limits;
  if (check.time_limit_s > 0) limits.seconds = check.time_limit_s;
  if (!check.memory_limit.empty()) {
    constexpr std::int64_t least = std::int64_t{16} << 20;  // a process with a C++ library
    limits.memory_bytes = parse_size("--memory-limit", check.memory_limit);
    if (limits.memory_bytes < least) {
      throw ConfigError(fmt::format("--memory-limit: found {} bytes, expected at least 16M",
                                    limits.memory_bytes));
    }
  }
  return limits;
}

void check_options(const PluginCheck& check) {
  const int sources = (check.suite.empty() ? 0 : 1) + (check.cases.empty() ? 0 : 1) +
                      (check.problem.any_shape() ? 1 : 0);
  if (sources > 1) {
    throw ConfigError("--suite, --case and the options of a problem exclude each other");
  }
  for (const CLI::Option* option : check.problem.schedule) {
    if (option->count() == 0 || option->get_name() == "--seed") continue;
    throw ConfigError(option->get_name() +
                      " means nothing to a plugin: its operations get all tokens at once");
  }
}

// What a plugin leaves out is said once, not in every record.
void note_operations(const verify::Plugin& plugin) {
  std::vector<std::string> missing;
  for (const std::string& name : verify::plugin_operations()) {
    if (name != "pipeline" && !plugin.offers(name)) missing.push_back(name);
  }
  if (missing.empty() || plugin.offers("pipeline")) return;
  note(fmt::format("plugin {} offers {}; not judged: {}", plugin.name,
                   fmt::join(plugin.operations, ", "), fmt::join(missing, ", ")));
}

std::vector<Record> run_jobs(const PluginCheck& check, const std::vector<Job>& jobs,
                             const verify::Plugin& plugin, Journal* journal) {
  verify::Options how;
  how.seed = check.problem.problem.seed;
  Progress progress;
  std::vector<Record> records;
  const auto keep = [&](std::vector<Record> of_job) {
    for (Record& record : of_job) record.environment.version = INDEXPOOL_VERSION;
    if (journal != nullptr) journal->append(of_job);
    records.insert(records.end(), of_job.begin(), of_job.end());
  };
  if (plugin.refusal) {
    how.repeat = command_words(check);
    keep({verify::refusal_record(plugin, how)});
    return records;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string place = fmt::format("{}/{} {}", i + 1, jobs.size(), jobs[i].name);
    progress.show(place);
    how.repeat = jobs[i].repeat;
    how.progress = [&](const std::string& step) { progress.show(place + ": " + step); };
    keep(jobs[i].run(plugin, how));
  }
  return records;
}

}  // namespace

void PluginCheck::declare(CLI::App& app) {
  app.add_option("--plugin", library, "a shared object (indexpool/verify/plugin.h)")
      ->type_name("FILE")
      ->group(group);
  others = {app.add_option("--suite", suite, "smoke (default), ci, full, or a JSON file"),
            app.add_option("--case", cases, "case files (safetensors)")->expected(1, -1),
            app.add_option("--time-limit", time_limit_s, "of an operation, in seconds (60)")
                ->check(CLI::Range(0.01, 86400.0)),
            app.add_option("--memory-limit", memory_limit, "of its process, as in 512M (4G)")};
  for (CLI::Option* option : others) option->group(group);
  problem.declare(app);
  for (const auto* options : {&problem.shape, &problem.schedule}) {
    for (CLI::Option* option : *options) {
      if (option->get_name() != "--mode") others.push_back(option);
    }
  }
}

void PluginCheck::require_none() const {
  for (const CLI::Option* option : others) {
    if (option->count() > 0) throw ConfigError(option->get_name() + " needs --plugin");
  }
}

int check_plugin_with(const PluginCheck& check, reports::Format format, const std::string& out) {
  check_options(check);
  const std::vector<Job> jobs = jobs_of(check);
  const verify::Plugin plugin = verify::open_plugin(check.library, limits_of(check));
  if (!plugin.refusal) note_operations(plugin);
  std::unique_ptr<Journal> journal;
  if (!out.empty()) journal = std::make_unique<Journal>(out, false);
  const std::vector<Record> records = run_jobs(check, jobs, plugin, journal.get());
  if (journal) {
    const std::string title = fmt::format("Plugin {} ({})", plugin.name, check.library);
    reports::write_report(out, {title, records, {}, command_of(check, jobs)});
    journal->remove();
    note("report: " + out + "/report.html");
  }
  print_records(records, format);
  return exit_code(records);
}

}  // namespace indexpool::cli
