// indexpool report: recorded results to documents; nothing is run.
#include "indexpool/reports/report.hpp"

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/attachments.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/forecast.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string out, title = "Recorded results", model = "glm-5.3-flash", device = "a100-sxm4-80gb";
  std::string mutants, rules, faults;  // results of other commands
  FormatOption format;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(path + ": can't be read; does it exist?");
  return {std::istreambuf_iterator<char>(in), {}};
}

void attach(const ReportOptions& options, reports::ReportInput& input) {
  struct Kind {
    const char* option;
    const std::string& file;
    reports::Attachment (*read)(std::string_view text, std::string_view where);
  };
  for (const Kind& kind : {Kind{"--mutants", options.mutants, reports::mutants_attachment},
                           Kind{"--rules", options.rules, reports::rules_attachment},
                           Kind{"--faults", options.faults, reports::faults_attachment}}) {
    if (kind.file.empty()) continue;
    input.attachments.push_back(kind.read(text_of(kind.file), kind.file));
    input.command += fmt::format(" {} {}", kind.option, shell_quoted(kind.file));
  }
}

// The device that the last prediction is for, where it is one that we know.
std::optional<DeviceSpec> predicted_device(const std::vector<Record>& records) {
  std::string name;
  for (const Record& record : records) {
    if (record.prediction) name = record.prediction->device;
  }
  for (const std::string& known : device_names()) {
    if (known == name) return load_device(known);
  }
  return std::nullopt;
}

int report_on(const ReportOptions& options) {
  const reports::Format format = options.format.parsed();
  const ArchitectureConfig model = load_architecture(options.model);
  const DeviceSpec device = load_device(options.device);
  reports::ReportInput input;
  input.title = options.title;
  input.command = "indexpool report";
  for (const std::string& file : options.files) {
    for (Record& record : read_records(file)) input.records.push_back(std::move(record));
    input.command += ' ' + shell_quoted(file);
  }
  attach(options, input);
  if (!options.out.empty()) {
    input.device = predicted_device(input.records);
    input.command += " --out " + shell_quoted(options.out);
    input.curves = context_curves(model, device);
    reports::write_report(options.out, input);
    note("report: " + options.out + "/report.html");
  }
  print_records(input.records, format);
  return exit_code(input.records);
}

std::function<int()> declare_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("records", options->files, "files of records (JSON Lines)")->required();
  app.add_option("--out", options->out, "folder for report.html, report.md, junit.xml, ...");
  app.add_option("--mutants", options->mutants, "scores.json of `indexpool mutants --out`");
  app.add_option("--rules", options->rules, "rules.json of `indexpool mutants --rules --out`");
  app.add_option("--faults", options->faults, "coverage.json of `indexpool faults --out`");
  app.add_option("--title", options->title, "headline of the report")->capture_default_str();
  app.add_option("--model", options->model, "model of the memory and time plots")
      ->capture_default_str();
  app.add_option("--device", options->device, "device of the time plots")->capture_default_str();
  options->format.declare(app);
  return [options] { return report_on(*options); };
}

}  // namespace

extern const Command report_command = {
    "report", "Documents from recorded results; the exit code is that of their verdicts",
    "  indexpool report indexpool-report/records.jsonl --out again\n"
    "  indexpool report a.jsonl b.jsonl --format md\n"
    "  indexpool report a.jsonl --mutants mutants/scores.json --rules mutants/rules.json "
    "--out again\n",
    declare_report};

}  // namespace indexpool::cli
