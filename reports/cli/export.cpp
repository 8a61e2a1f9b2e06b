// indexpool export: cases as files, for kernels in any language.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/case.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/problem_options.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/verify/foreign/manifest.hpp"

namespace indexpool::cli {
namespace {

struct ExportOptions {
  std::string suite, out;
  std::vector<std::string> cases;
  ProblemOptions problem;
};

verify::Options options_of(const Problem& problem) {
  verify::Options options;
  options.schedule = problem.schedule;
  options.states_per_page = problem.states_per_page;
  options.seed = problem.seed;
  return options;
}

verify::ExportJob problem_job(const Problem& problem, std::size_t number) {
  return {fmt::format("{:04}", number), [problem] {
            return verify::prepare_foreign(verify::make_case(problem), options_of(problem),
                                           verify::about_ties(problem));
          }};
}

// Files are read and checked here, before anything is written.
std::vector<verify::ExportJob> case_jobs(const ExportOptions& options) {
  std::vector<verify::ExportJob> jobs;
  std::set<std::string> ids;
  for (const std::string& file : options.cases) {
    auto test_case = std::make_shared<const Case>(read_case(file));
    if (!ids.insert(test_case->name).second) {
      throw ConfigError(
          fmt::format("--case {}: another file is called {} as well; export it into "
                      "a folder of its own",
                      file, test_case->name));
    }
    jobs.push_back({test_case->name, [test_case, how = options_of(options.problem.problem)] {
                      return verify::prepare_foreign(*test_case, how);
                    }});
  }
  return jobs;
}

std::vector<verify::ExportJob> jobs_of(const ExportOptions& options) {
  const int sources = (options.suite.empty() ? 0 : 1) + (options.cases.empty() ? 0 : 1) +
                      (options.problem.any_shape() ? 1 : 0);
  if (sources > 1)
    throw ConfigError("a suite, --case and the options of a problem exclude each other");
  if (options.problem.any_schedule() && options.cases.empty() && !options.problem.any_shape()) {
    throw ConfigError("a schedule needs a problem or a case: add --lengths or --case");
  }
  if (!options.cases.empty()) return case_jobs(options);
  if (options.problem.any_shape()) return {problem_job(options.problem.parsed(), 1)};
  std::vector<verify::ExportJob> jobs;
  const Suite suite = verify::load_shipped_suite(options.suite.empty() ? "smoke" : options.suite);
  for (const Problem& problem : suite.problems) {
    jobs.push_back(problem_job(problem, jobs.size() + 1));
  }
  return jobs;
}

int export_with(const ExportOptions& options) {
  const std::vector<verify::ExportJob> jobs = jobs_of(options);
  Progress progress;
  verify::write_export(options.out, jobs, [&](const std::string& text) { progress.show(text); });
  print(
      fmt::format("{} cases in {}: read {}/manifest.json, write the outputs it names, then run\n"
                  "  indexpool check {}\n",
                  jobs.size(), options.out, options.out, shell_quoted(options.out)));
  return exit_passed;
}

std::function<int()> declare_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("suite", options->suite, "smoke (default), ci, full, or a JSON file");
  app.add_option("--case", options->cases, "case files (safetensors)")->expected(1, -1);
  app.add_option("--out", options->out, "folder to write; must be new or empty")->required();
  options->problem.declare(app);
  return [options] { return export_with(*options); };
}

}  // namespace

extern const Command export_command = {
    "export", "Cases as safetensors, for a kernel in any language; `check` judges its outputs",
    "  indexpool export ci --out cases\n"
    "  indexpool export --case tests/golden/fp8_small.safetensors --out cases\n"
    "  indexpool export --lengths 5,64,259 --drafts 3 --prefill 60 --out cases\n",
    declare_export};

}  // namespace indexpool::cli
