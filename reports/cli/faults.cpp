// indexpool faults: injected faults against the layers of checksums.
#include "indexpool/verify/faults/faults.hpp"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/fault_tables.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

namespace fault = verify::faults;

struct FaultsOptions {
  fault::CampaignOptions campaign;
  std::string trials = "2000", clean = "200000", out;
  FormatOption format;
};

std::string command_of(const FaultsOptions& options) {
  const FaultsOptions standard;
  std::string command = "indexpool faults";
  const auto option = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) command += fmt::format(" {} {}", name, shell_quoted(value));
  };
  option("--trials", options.trials, standard.trials);
  option("--clean", options.clean, standard.clean);
  option("--mode", options.campaign.mode, standard.campaign.mode);
  option("--seed", std::to_string(options.campaign.seed), std::to_string(standard.campaign.seed));
  for (const std::string& site : options.campaign.sites) command += " --site " + site;
  for (const std::string& model : options.campaign.models) command += " --model " + model;
  return command;
}

std::string for_people(const fault::Campaign& campaign, const std::vector<Record>& records,
                       reports::Format format, bool colour) {
  return reports::render(cost_table(campaign), format, colour) + '\n' +
         reports::render(coverage_table(campaign), format, colour) + '\n' +
         fault_summary(campaign, records);
}

void write_files(const FaultsOptions& options, const fault::Campaign& campaign,
                 const std::vector<Record>& records) {
  const std::filesystem::path folder = options.out;
  write_text(folder / "coverage.csv",
             reports::render(coverage_by_layer(campaign), reports::Format::csv));
  write_text(folder / "coverage.json",
             reports::render(coverage_by_layer(campaign), reports::Format::json));
  write_text(folder / "coverage.md", for_people(campaign, records, reports::Format::md, false));
  reports::write_report(
      folder,
      {"Injected faults, mode " + options.campaign.mode, records, {}, options.campaign.repeat});
  note("report: " + options.out + "/report.html, the matrix of layers in coverage.md");
}

int faults_with(FaultsOptions options) {
  const reports::Format format = options.format.parsed();
  options.campaign.trials = parse_size("--trials", options.trials);
  options.campaign.clean_runs = parse_size("--clean", options.clean);
  for (const std::string& site : options.campaign.sites) {
    require_known("site", site, fault::site_names());
  }
  for (const std::string& model : options.campaign.models) {
    require_known("fault model", model, fault::model_names());
  }
  if (!options.out.empty()) require_writable_folder(options.out);
  Progress progress;
  options.campaign.progress = [&](const std::string& text) { progress.show(text); };
  options.campaign.repeat = command_of(options);
  const fault::Campaign campaign = fault::run_campaign(options.campaign);
  std::vector<Record> records = fault::records_of(campaign);
  for (Record& record : records) record.environment.version = INDEXPOOL_VERSION;
  if (!options.out.empty()) write_files(options, campaign, records);
  const bool people = format == reports::Format::table || format == reports::Format::md;
  print(people ? for_people(campaign, records, format, colour_wanted())
               : reports::render(coverage_by_layer(campaign), format));
  return exit_code(records);
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::function<int()> declare_faults(CLI::App& app) {
  auto options = std::make_shared<FaultsOptions>();
  app.add_option("--trials", options->trials, "faults per site and model, as in 2000 or 10K")
      ->capture_default_str();
  app.add_option("--site", options->campaign.sites,
                 "where and when (default: all): " + joined(fault::site_names()))
      ->type_name("SITE");
  app.add_option("--model", options->campaign.models,
                 "what a fault does (default: all): " + joined(fault::model_names()))
      ->type_name("MODEL");
  app.add_option("--mode", options->campaign.mode, "numeric mode")->capture_default_str();
  app.add_option("--clean", options->clean, "runs without a fault, for false alarms")
      ->capture_default_str();
  app.add_option("--seed", options->campaign.seed, "of inputs and faults")->capture_default_str();
  app.add_option("--threads", options->campaign.threads,
                 "threads (0: one per core); the numbers stay the same")
      ->capture_default_str();
  app.add_option("--out", options->out,
                 "folder for the report, records.jsonl, coverage.md, .csv and .json");
  options->format.declare(app);
  return [options] { return faults_with(*options); };
}

}  // namespace

extern const Command faults_command = {
    "faults", "Injected faults: which checksum sees which, how surely, at what price",
    "  indexpool faults\n"
    "  indexpool faults --site codes --site scales --model stripe --trials 100K\n"
    "  indexpool faults --mode int8 --clean 10000 --format csv\n"
    "  indexpool faults --out fault-report\n",
    declare_faults};

}  // namespace indexpool::cli
