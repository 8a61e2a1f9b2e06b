// indexpool strategies: what the dynamic strategies of the published forms save, and what they cost
// in recall.
#include "indexpool/verify/strategies/strategies.hpp"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/strategy_tables.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

namespace st = verify::strategies;

struct StrategiesOptions {
  st::StrategyOptions strategies;
  std::string tokens = "512", out;
  FormatOption format;
};

std::string command_of(const StrategiesOptions& options) {
  const StrategiesOptions standard;
  std::string command = "indexpool strategies";
  const auto option = [&](const char* name, const auto& value, const auto& usual) {
    if (value != usual) command += fmt::format(" {} {}", name, value);
  };
  if (!options.strategies.names.empty())
    command += fmt::format(" --strategy {}", fmt::join(options.strategies.names, ","));
  option("--tokens", options.tokens, standard.tokens);
  option("--sequences", options.strategies.sequences, standard.strategies.sequences);
  option("--seed", options.strategies.seed, standard.strategies.seed);
  if (options.strategies.device != standard.strategies.device)
    command += " --device " + shell_quoted(options.strategies.device);
  return command;
}

std::string for_people(const st::StrategyOptions& options, const Outcomes& outcomes,
                       reports::Format format, bool colour) {
  std::string text = reports::render(strategy_table(outcomes), format, colour) + '\n' +
                     reports::render(monitoring_table(outcomes), format, colour) + '\n';
  const reports::Table overlapped = overlap_table(outcomes);
  if (!overlapped.rows.empty()) text += reports::render(overlapped, format, colour) + '\n';
  return text + strategy_summary(options, outcomes);
}

void write_files(const StrategiesOptions& options, const Outcomes& outcomes,
                 const std::vector<Record>& records) {
  const std::filesystem::path folder = options.out;
  write_records(folder / "strategies.jsonl", records);
  write_text(folder / "strategies.csv",
             reports::render(strategy_numbers(records), reports::Format::csv));
  reports::write_report(folder, {"Dynamic strategies of the published forms",
                                 records,
                                 {},
                                 options.strategies.repeat,
                                 std::nullopt,
                                 strategy_sections(options.strategies, outcomes)});
  note("report: " + options.out + "/report.html, records in strategies.jsonl and .csv");
}

int strategies_with(StrategiesOptions options) {
  const reports::Format format = options.format.parsed();
  for (const std::string& name : options.strategies.names)
    require_known("strategy", name, st::strategy_names());
  options.strategies.tokens = parse_size("--tokens", options.tokens);
  options.strategies.repeat = command_of(options);
  if (!options.out.empty()) require_writable_folder(options.out);
  Outcomes outcomes;
  {
    Progress progress;
    options.strategies.progress = [&](const std::string& text) { progress.show(text); };
    outcomes = st::run_strategies(options.strategies);
  }
  std::vector<Record> records = st::records_of(options.strategies, outcomes);
  for (Record& record : records) record.environment.version = INDEXPOOL_VERSION;
  if (!options.out.empty()) write_files(options, outcomes, records);
  const bool people = format == reports::Format::table || format == reports::Format::md;
  print(people ? for_people(options.strategies, outcomes, format,
                            format == reports::Format::table && colour_wanted())
               : reports::render(strategy_numbers(records), format));
  return exit_code(records);
}

std::function<int()> declare_strategies(CLI::App& app) {
  auto options = std::make_shared<StrategiesOptions>();
  std::string known;
  for (const st::StrategyInfo& each : st::strategies())
    known += fmt::format("\n  {}: {} ({})", each.name, each.decides, each.article);
  app.add_option("--strategy", options->strategies.names,
                 "one or several, as in ratio,edge (default: all):" + known)
      ->delimiter(',')
      ->type_name("NAME");
  app.add_option("--tokens", options->tokens,
                 "of a sequence; `short` takes lengths around its own threshold")
      ->capture_default_str();
  app.add_option("--sequences", options->strategies.sequences, "planted sequences of a strategy")
      ->capture_default_str();
  app.add_option("--seed", options->strategies.seed, "of the planted sequences")
      ->capture_default_str();
  app.add_option("--device", options->strategies.device, "of predicted times: name, or a JSON file")
      ->capture_default_str();
  app.add_option("--out", options->out,
                 "folder for the report, strategies.jsonl and strategies.csv");
  options->format.declare(app);
  return [options] { return strategies_with(*options); };
}

}  // namespace

extern const Command strategies_command = {
    "strategies",
    "Dynamic strategies of the published forms: what each saves, what it costs in recall",
    "  indexpool strategies\n"
    "  indexpool strategies --strategy incremental,frequency --seed 7\n"
    "  indexpool strategies --strategy asynchronous --device h200-sxm\n"
    "  indexpool strategies --tokens 1K --format csv\n"
    "  indexpool strategies --out strategies\n",
    declare_strategies};

}  // namespace indexpool::cli
