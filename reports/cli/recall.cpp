// indexpool recall: what each form of pooling finds of what the unpooled scores ask for.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/safetensors.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/golden.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/recall_page_of.hpp"
#include "indexpool/reports/cli/recall_tables.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

using reference::training::Width;
using verify::recall::CompareOptions;
using verify::recall::DataSet;

struct RecallCommandOptions {
  CompareOptions compare;
  std::vector<std::string> data = {"random", "planted", "layer6", "layer14", "layer22"};
  std::string mode = "off", activations, out;
  FormatOption format;
};

Width width_of(const std::string& mode) {
  require_known("mode", mode, {"off", "int8", "fp8"});
  if (mode == "int8") return Width::i8;
  return mode == "fp8" ? Width::e4m3 : Width::off;
}

DataSet data_named(const RecallCommandOptions& options, const std::string& name) {
  verify::recall::Sizes sizes;
  sizes.seed = options.compare.seed;
  if (name == "random") return verify::recall::unstructured_data(sizes);
  if (name == "planted") return verify::recall::planted_data(sizes);
  const std::filesystem::path path =
      options.activations.empty() ? activations_file() : std::filesystem::path(options.activations);
  return verify::recall::activations(read_safetensors(path), name);
}

std::string command_of(const RecallCommandOptions& options, const std::vector<std::string>& data) {
  const RecallCommandOptions standard;
  const CompareOptions &asked = options.compare, &usual = standard.compare;
  std::string command = "indexpool recall";
  const auto option = [&](const char* name, const auto& value, const auto& other) {
    if (value != other) command += fmt::format(" {} {}", name, value);
  };
  if (data != standard.data) command += fmt::format(" --data {}", fmt::join(data, ","));
  if (asked.ratios != usual.ratios)
    command += fmt::format(" --ratio {}", fmt::join(asked.ratios, ","));
  option("--k", asked.k, usual.k);
  option("--pools", asked.pools, usual.pools);
  if (!asked.policies.empty())
    command += fmt::format(" --policy {}", fmt::join(asked.policies, ","));
  option("--seed", asked.seed, usual.seed);
  option("--epochs", asked.epochs, usual.epochs);
  option("--mode", options.mode, standard.mode);
  if (!options.activations.empty())
    command += " --activations " + shell_quoted(options.activations);
  return command;
}

std::vector<RecallResult> compare_all(const RecallCommandOptions& options) {
  std::vector<DataSet> sets;
  for (const std::string& name : options.data) {
    sets.push_back(data_named(options, name));
    validate(options.compare, sets.back());
  }
  Progress progress;
  std::vector<RecallResult> results;
  for (const DataSet& data : sets) {
    auto rows = compare(data, options.compare, [&](std::int64_t done, std::int64_t all) {
      progress.show(fmt::format("{}: {} of {}", data.name, done, all));
    });
    results.push_back(
        {data.name, data.about, data.unit, std::move(rows), command_of(options, {data.name})});
  }
  return results;
}

void write_files(const RecallCommandOptions& options, const std::vector<RecallResult>& results,
                 const std::vector<Record>& records) {
  if (options.out.empty()) return;
  const std::filesystem::path folder = options.out;
  write_records(folder / "recall.jsonl", records);
  write_text(folder / "recall.html",
             recall_html(recall_page_of(results, command_of(options, options.data))));
  note("written: " + (folder / "recall.html").string() + ", recall.jsonl");
}

int recall_with(RecallCommandOptions& options) {
  const reports::Format format = options.format.parsed();
  const std::vector<std::string> known = RecallCommandOptions().data;
  for (const std::string& name : options.data) require_known("data set", name, known);
  options.compare.pooled = width_of(options.mode);
  if (!options.out.empty()) require_writable_folder(options.out);
  const std::vector<RecallResult> results = compare_all(options);
  const std::vector<Record> records = recall_records(results, options.compare.seed);
  const bool people = format == reports::Format::table || format == reports::Format::md;
  print(render(people ? ranking_table(results) : recall_table(results), format, colour_wanted()));
  if (format == reports::Format::table) print("\n" + leaders_text(results));
  write_files(options, results, records);
  for (const Record& record : records)
    if (!record.verdict.reason.empty())
      note(fmt::format("{}, {}: {}", record.case_name, record.implementation,
                       record.verdict.reason));
  return exit_code(records);
}

std::function<int()> declare_recall(CLI::App& app) {
  auto options = std::make_shared<RecallCommandOptions>();
  CompareOptions& compare = options->compare;
  app.add_option("--data", options->data, "random, planted, layer6, layer14, layer22")
      ->delimiter(',');
  app.add_option("--ratio", compare.ratios, "tokens pooled into one, 1 to 16; default 2,4,8,16")
      ->delimiter(',');
  app.add_option("--k", compare.k,
                 "tokens asked for; default 16 of 256, and 64 of the 1024 of real activations");
  app.add_option("--pools", compare.pools, "pools selected; default k / ratio, rounded up");
  app.add_option("--policy", compare.policies,
                 "those to compare (mean and the oracle always are); default all")
      ->delimiter(',');
  app.add_option("--seed", compare.seed, "of made data, noise and resampling")
      ->capture_default_str();
  app.add_option("--epochs", compare.epochs, "of training, full passes")->capture_default_str();
  app.add_option("--mode", options->mode, "quantiser of the pools: off, int8 or fp8")
      ->capture_default_str();
  app.add_option("--activations", options->activations,
                 "file of verify/recall/activations.py; default the one that comes with the "
                 "program");
  app.add_option("--out", options->out, "folder for recall.html and recall.jsonl");
  options->format.declare(app);
  return [options] { return recall_with(*options); };
}

}  // namespace

extern const Command recall_command = {
    "recall", "Rank every form of pooling by what it finds of the unpooled indexer's best tokens",
    "  indexpool recall --out recall\n"
    "  indexpool recall --data layer14 --ratio 4\n"
    "  indexpool recall --data planted --policy kpool,gated,block_max --epochs 60\n"
    "  indexpool recall --data layer6,layer22 --k 128 --pools 128 --mode int8 --format csv\n",
    declare_recall};

}  // namespace indexpool::cli
