// indexpool train: learns the weights of a pooling on planted data.
#include "indexpool/reference/training/train.hpp"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/cli/train_tables.hpp"

namespace indexpool::cli {
namespace {

struct TrainCommandOptions {
  TrainOptions train;
  std::string qat = "off", out;
  FormatOption format;
};

std::string command_of(const TrainCommandOptions& options) {
  const TrainCommandOptions standard;
  const TrainOptions &train = options.train, &usual = standard.train;
  std::string command = "indexpool train --policy " + shell_quoted(train.policy);
  const auto option = [&](const char* name, const auto& value, const auto& other) {
    if (value != other) command += fmt::format(" {} {}", name, value);
  };
  option("--epochs", train.epochs, usual.epochs);
  option("--seed", train.data.seed, usual.data.seed);
  option("--ratio", train.data.index_kpool, usual.data.index_kpool);
  option("--recall-k", train.recall_k, usual.recall_k);
  option("--sequences", train.data.sequences, usual.data.sequences);
  option("--held-out", train.held_out, usual.held_out);
  option("--learning-rate", train.learning_rate, usual.learning_rate);
  if (options.qat != standard.qat) command += " --qat " + shell_quoted(options.qat);
  if (train.two_stage) command += " --two-stage";
  if (train.f16_updates) command += " --f16-updates";
  if (train.objective.dynamic_scaling) command += " --dynamic-scaling";
  return command;
}

void write_files(const TrainCommandOptions& options, const Training& training,
                 const Record& record) {
  if (options.out.empty()) return;
  const std::filesystem::path folder = options.out;
  const std::string& command = record.repeat;
  write_safetensors(folder / "parameters.safetensors",
                    parameter_file(options.train, training, command));
  write_text(folder / "epochs.csv",
             render(epoch_table(options.train, training), reports::Format::csv));
  write_text(folder / "train.html", train_html(train_page_of(options.train, training, command)));
  write_records(folder / "records.jsonl", {record});
  note("written: " + (folder / "train.html").string() +
       ", parameters.safetensors, epochs.csv, records.jsonl");
}

int train_with(TrainCommandOptions& options) {
  const reports::Format format = options.format.parsed();
  options.train.objective.paths = reference::training::parse_paths(options.qat);
  validate(options.train);
  if (!options.out.empty()) require_writable_folder(options.out);
  Training training;
  {
    Progress progress;
    training = train(options.train, [&](const reference::training::Epoch& epoch) {
      progress.show(
          fmt::format("epoch {}/{}: {:.5f}", epoch.number, options.train.epochs, epoch.objective));
    });
  }
  const Record record = training_record(options.train, training, command_of(options));
  print(render(epoch_table(options.train, training), format, colour_wanted()));
  if (format == reports::Format::table) print("\n" + outcome_text(options.train, training));
  write_files(options, training, record);
  if (!record.verdict.reason.empty()) note(record.verdict.reason);
  return exit_code({record});
}

std::function<int()> declare_train(CLI::App& app) {
  auto options = std::make_shared<TrainCommandOptions>();
  TrainOptions& train = options->train;
  app.add_option(
         "--policy", train.policy,
         fmt::format("one of {}", fmt::join(reference::training::trainable_policies(), ", ")))
      ->capture_default_str();
  app.add_option("--epochs", train.epochs, "full passes over the sequences")->capture_default_str();
  app.add_option("--seed", train.data.seed, "of the data and the noise")->capture_default_str();
  app.add_option("--ratio", train.data.index_kpool, "tokens of a group, 2 to 16")
      ->capture_default_str();
  app.add_option("--recall-k", train.recall_k, "tokens asked for, and groups selected")
      ->capture_default_str();
  app.add_option("--sequences", train.data.sequences, "sequences of 256 tokens learnt from")
      ->capture_default_str();
  app.add_option("--held-out", train.held_out, "further sequences that recall is taken on")
      ->capture_default_str();
  app.add_option("--learning-rate", train.learning_rate, "largest step of Adam")
      ->capture_default_str();
  app.add_option("--qat", options->qat,
                 "quantisers inside: int8, e4m3 or f16 for the pools (vectors and weights in f16), "
                 "or pooled=, pool_weights=, vectors= each")
      ->capture_default_str();
  app.add_flag("--two-stage", train.two_stage,
               "weights fixed for the first half of the epochs, learnt in the second");
  app.add_flag("--f16-updates", train.f16_updates, "round every update to f16");
  app.add_flag("--dynamic-scaling", train.objective.dynamic_scaling,
               "scale vectors by the median of their norms before pooling, and back after");
  app.add_option("--out", options->out,
                 "folder for train.html, parameters.safetensors, epochs.csv and records.jsonl");
  options->format.declare(app);
  return [options] { return train_with(*options); };
}

}  // namespace

extern const Command train_command = {
    "train", "Learn a pooling's weights so that it selects what the unpooled indexer selects",
    "  indexpool train --out trained\n"
    "  indexpool train --policy gated --epochs 60 --ratio 8 --seed 7\n"
    "  indexpool train --policy composite --two-stage --f16-updates\n"
    "  indexpool train --qat int8 --format csv\n"
    "  indexpool train --qat pooled=e4m3,vectors=int8 --dynamic-scaling --out quantised\n",
    declare_train};

}  // namespace indexpool::cli
