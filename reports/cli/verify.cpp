// indexpool verify: kernels against the reference, on suites, case files or one problem.
#include "indexpool/verify/verify.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/problem_options.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::cli {
namespace {

struct VerifyOptions {
  std::string suite, target = "simt", out;
  std::vector<std::string> cases;
  ProblemOptions problem;
  bool measure = false, resume = false;
  FormatOption format;
};

// What one repeat line repeats.
struct Job {
  std::string name, repeat;
  std::function<std::vector<Record>(const verify::Options&)> run;
};

std::string target_words(const VerifyOptions& options) {
  return options.target == "simt" ? "" : " --target " + options.target;
}

std::string schedule_words(const ProblemOptions& options) {
  std::string words;
  for (const CLI::Option* option : options.schedule) {
    if (option->count() > 0)
      words += fmt::format(" {} {}", option->get_name(), option->results()[0]);
  }
  return words;
}

// Files are read and checked here, before anything runs or is written.
std::vector<Job> case_jobs(const VerifyOptions& options) {
  std::vector<Job> jobs;
  for (const std::string& file : options.cases) {
    auto test_case = std::make_shared<const Case>(read_case(file));
    jobs.push_back(
        {test_case->name,
         "indexpool verify --case " + shell_quoted(file) + schedule_words(options.problem) +
             target_words(options),
         [test_case](const verify::Options& how) { return verify::verify_case(*test_case, how); }});
  }
  return jobs;
}

Job problem_job(const Problem& problem, const VerifyOptions& options) {
  return {describe(problem), repeat_line(problem) + target_words(options),
          [problem](const verify::Options& how) { return verify::verify_problem(problem, how); }};
}

std::vector<Job> jobs_of(const VerifyOptions& options) {
  if (!options.cases.empty()) return case_jobs(options);
  if (options.problem.any_shape()) return {problem_job(options.problem.parsed(), options)};
  std::vector<Job> jobs;
  const Suite suite = verify::load_suite(options.suite.empty() ? "smoke" : options.suite);
  for (const Problem& problem : suite.problems) jobs.push_back(problem_job(problem, options));
  return jobs;
}

std::string title_of(const VerifyOptions& options) {
  std::string what = "suite " + (options.suite.empty() ? "smoke" : options.suite);
  if (!options.cases.empty()) {
    what = options.cases.size() == 1 ? options.cases.front()
                                     : fmt::format("{} case files", options.cases.size());
  } else if (options.problem.any_shape()) {
    what = describe(options.problem.parsed());
  }
  return fmt::format("Verification on {}: {}", options.target, what);
}

std::string command_of(const VerifyOptions& options, const std::vector<Job>& jobs) {
  if (options.cases.empty() && !options.problem.any_shape()) {
    return "indexpool verify --suite " +
           shell_quoted(options.suite.empty() ? "smoke" : options.suite) + target_words(options);
  }
  if (options.cases.empty()) return jobs.front().repeat;
  std::string command = "indexpool verify --case";
  for (const std::string& file : options.cases) command += ' ' + shell_quoted(file);
  return command + schedule_words(options.problem) + target_words(options);
}

void check_options(const VerifyOptions& options) {
  require_known("target", options.target, {"simt", "cuda", "reference"});
  if (options.measure && options.target != "cuda") {
    throw ConfigError("--measure needs --target cuda: time on the executor means nothing");
  }
  const int sources = (options.suite.empty() ? 0 : 1) + (options.cases.empty() ? 0 : 1) +
                      (options.problem.any_shape() ? 1 : 0);
  if (sources > 1) {
    throw ConfigError("--suite, --case and the options of a problem exclude each other");
  }
  if (options.problem.any_schedule() && options.cases.empty() && !options.problem.any_shape()) {
    throw ConfigError("a schedule needs a problem or a case: add --lengths or --case");
  }
  if (options.resume && options.out.empty()) {
    throw ConfigError("--resume needs --out, the folder of the run to continue");
  }
  if (options.target == "cuda") kernels::make_cuda_target();  // absent: before anything runs
}

std::vector<Record> run_jobs(const std::vector<Job>& jobs, const VerifyOptions& options,
                             Journal* journal) {
  verify::Options how;
  how.target = options.target;
  how.schedule = options.problem.problem.schedule;
  how.states_per_page = options.problem.problem.states_per_page;
  how.seed = options.problem.problem.seed;
  how.measure = options.measure;
  Progress progress;
  std::vector<Record> records;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (journal != nullptr && journal->finished(jobs[i].repeat)) continue;
    const std::string place = fmt::format("{}/{} {}", i + 1, jobs.size(), jobs[i].name);
    progress.show(place);
    how.repeat = jobs[i].repeat;
    how.progress = [&](const std::string& step) { progress.show(place + ": " + step); };
    std::vector<Record> of_job = jobs[i].run(how);
    for (Record& record : of_job) record.environment.version = INDEXPOOL_VERSION;
    if (journal != nullptr) journal->append(of_job);
    records.insert(records.end(), of_job.begin(), of_job.end());
  }
  return journal != nullptr ? journal->records() : records;
}

int verify_with(const VerifyOptions& options) {
  const reports::Format format = options.format.parsed();
  check_options(options);
  const std::vector<Job> jobs = jobs_of(options);
  std::unique_ptr<Journal> journal;
  if (!options.out.empty()) journal = std::make_unique<Journal>(options.out, options.resume);
  const std::vector<Record> records = run_jobs(jobs, options, journal.get());
  if (journal) {
    reports::write_report(options.out, {title_of(options), records, {}, command_of(options, jobs)});
    journal->remove();
    note("report: " + options.out + "/report.html");
  }
  print_records(records, format);
  return exit_code(records);
}

std::function<int()> declare_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option("--suite", options->suite, "smoke (default), ci, full, or a JSON file");
  app.add_option("--case", options->cases, "case files (safetensors)")->expected(1, -1);
  app.add_option("--target", options->target, "simt, cuda, or reference (no kernels)")
      ->capture_default_str();
  app.add_flag("--measure", options->measure, "time what passed (cuda)");
  app.add_option("--out", options->out, "folder for the report and records.jsonl");
  app.add_flag("--resume", options->resume, "continue the run that --out holds");
  options->format.declare(app);
  options->problem.declare(app);
  return [options] { return verify_with(*options); };
}

}  // namespace

extern const Command verify_command = {
    "verify", "Kernels against the reference: a suite, case files, or one problem",
    "  indexpool verify\n"
    "  indexpool verify --suite ci --out results --resume\n"
    "  indexpool verify --case fp8.safetensors --target simt\n"
    "  indexpool verify --attention hybrid --mode bf16 --heads 2 --head-dim 64 --lengths 37\n"
    "  indexpool verify --lengths 5,64,259 --fill ties --drafts 3 --prefill 100\n",
    declare_verify};

}  // namespace indexpool::cli
