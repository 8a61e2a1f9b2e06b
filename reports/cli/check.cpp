// indexpool check: verdicts about a kernel that ran elsewhere, or that a shared object holds.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/plugin_check.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/verify/foreign/manifest.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

struct CheckOptions {
  std::string folder, out;
  std::vector<std::string> only;
  verify::ForeignContract contract;
  FormatOption format;
  PluginCheck plugin;
  std::vector<CLI::Option*> of_folders;  // those that mean nothing with --plugin
};

// A case with what came back, read and checked before anything is judged.
struct Job {
  verify::ManifestEntry entry;
  verify::ForeignOutputs outputs;
};

std::string contract_words(const verify::ForeignContract& contract) {
  const verify::ForeignContract usual;
  std::string words;
  const auto option = [&](const char* name, const std::string& value, const std::string& standard) {
    if (value != standard) words += fmt::format(" {} {}", name, shell_quoted(value));
  };
  option("--mode", contract.mode, usual.mode);
  option("--layout", contract.layout, usual.layout);
  option("--tail", contract.tail, usual.tail);
  option("--order", contract.order, usual.order);
  option("--accumulation", contract.accumulation, usual.accumulation);
  if (contract.deterministic) words += " --deterministic";
  option("--name", contract.implementation, usual.implementation);
  for (const std::string& op : contract.operations) words += " --operation " + op;
  return words;
}

std::vector<verify::ManifestEntry> entries_of(const CheckOptions& options) {
  std::vector<verify::ManifestEntry> entries = verify::read_manifest(options.folder);
  if (options.only.empty()) return entries;
  std::vector<std::string> known;
  for (const verify::ManifestEntry& entry : entries) known.push_back(entry.id);
  for (const std::string& id : options.only) require_known("case", id, known);
  std::erase_if(entries, [&](const verify::ManifestEntry& entry) {
    return std::ranges::find(options.only, entry.id) == options.only.end();
  });
  return entries;
}

verify::ForeignCase read_case_of(const fs::path& folder, const verify::ManifestEntry& entry) {
  verify::ForeignCase foreign = verify::read_foreign_case(folder / entry.inputs);
  foreign.test_case.name = entry.name;
  return foreign;
}

std::vector<Job> read_jobs(const CheckOptions& options) {
  std::vector<Job> jobs;
  for (verify::ManifestEntry& entry : entries_of(options)) {
    const verify::ForeignCase foreign = read_case_of(options.folder, entry);
    Job job{std::move(entry), {}};
    job.outputs = verify::read_foreign_outputs(options.folder, job.entry);
    verify::validate(options.contract, foreign);
    verify::validate(job.outputs, foreign, options.contract);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<Record> judge(const std::vector<Job>& jobs, const CheckOptions& options) {
  Progress progress;
  std::vector<Record> records;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string place = fmt::format("{}/{} {}", i + 1, jobs.size(), jobs[i].entry.id);
    const verify::ForeignCase foreign = read_case_of(options.folder, jobs[i].entry);
    verify::Options how;
    how.seed = foreign.seed;
    how.repeat = fmt::format("indexpool check {} --only {}{}", shell_quoted(options.folder),
                             shell_quoted(jobs[i].entry.id), contract_words(options.contract));
    how.progress = [&](const std::string& step) { progress.show(place + ": " + step); };
    for (Record& record : verify::check_foreign(foreign, jobs[i].outputs, options.contract, how)) {
      record.environment.version = INDEXPOOL_VERSION;
      records.push_back(std::move(record));
    }
  }
  return records;
}

int check_folder_with(const CheckOptions& options, reports::Format format) {
  const std::vector<Job> jobs = read_jobs(options);
  const std::vector<Record> records = judge(jobs, options);
  if (!options.out.empty()) {
    std::string command = "indexpool check " + shell_quoted(options.folder);
    for (const std::string& id : options.only) command += " --only " + shell_quoted(id);
    reports::write_report(options.out,
                          {fmt::format("{}, {}", options.contract.implementation, options.folder),
                           records,
                           {},
                           command + contract_words(options.contract)});
    note("report: " + options.out + "/report.html");
  }
  print_records(records, format);
  return exit_code(records);
}

int check_with(const CheckOptions& options) {
  const reports::Format format = options.format.parsed();
  if (options.plugin.given()) {
    for (const CLI::Option* option : options.of_folders) {
      if (option->count() == 0) continue;
      throw ConfigError(option->get_name() + " and --plugin exclude each other");
    }
    return check_plugin_with(options.plugin, format, options.out);
  }
  options.plugin.require_none();
  if (options.folder.empty()) {
    throw ConfigError(
        "nothing to check: give a folder that `indexpool export` wrote, or --plugin libmine.so");
  }
  return check_folder_with(options, format);
}

std::function<int()> declare_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  verify::ForeignContract& contract = options->contract;
  options->of_folders = {
      app.add_option("folder", options->folder, "folder that `indexpool export` wrote"),
      app.add_option("--only", options->only, "cases, by their id in the manifest")
          ->expected(1, -1),
      app.add_option("--layout", contract.layout,
                     "of the pools: " + verify::layout_names() + " (default: by what came back)"),
      app.add_option("--tail", contract.tail, "columns of the tail: any, fixed, batch or compacted")
          ->capture_default_str(),
      app.add_option("--order", contract.order, "of the selected pools: any or ascending")
          ->capture_default_str(),
      app.add_option("--accumulation", contract.accumulation,
                     "of dot products: f32, mma_f16, mma_e4m3 or mma_i8")
          ->capture_default_str(),
      app.add_flag("--deterministic", contract.deterministic,
                   "the kernel claims the tie rule: the lower pool wins"),
      app.add_option("--operation", contract.operations,
                     "judge only these: pool, quantize_query, logits, topk")
          ->expected(1, -1),
      app.add_option("--name", contract.implementation, "what reports call the kernel")
          ->capture_default_str()};
  options->plugin.declare(app);
  CLI::Option* mode = app.get_option("--mode");
  mode->description(
      "numeric mode, of the problem (--plugin) or of the kernel (folder: default the case's)");
  app.add_option("--out", options->out, "folder for the report and records.jsonl");
  options->format.declare(app);
  return [options, mode] {
    if (mode->count() > 0) options->contract.mode = options->plugin.problem.problem.mode;
    return check_with(*options);
  };
}

}  // namespace

extern const Command check_command = {
    "check",
    "Certify a kernel that ran elsewhere, on cases that `export` wrote, or one in a shared object",
    "  indexpool check cases\n"
    "  indexpool check cases --layout token_pages --tail compacted --accumulation mma_e4m3\n"
    "  indexpool check cases --operation topk --deterministic --out results\n"
    "  indexpool check --plugin libmine.so --suite ci --time-limit 10\n"
    "  indexpool check --plugin libmine.so --mode bf16 --lengths 5,64,259 --fill ties\n",
    declare_check};

}  // namespace indexpool::cli
