// indexpool score: predictions against a table of measured times.
#include "indexpool/model/latency/score.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/measured_score.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/score_page_of.hpp"
#include "indexpool/reports/cli/score_tables.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

struct ScoreCommandOptions {
  std::string table, adapter, device, constants, save, rows, html, out;
  double held_out = 0.3;
  std::uint64_t seed = 1;
  bool fit = false, explain = false;
  FormatOption format;
};

DeviceSpec chosen_device(const ScoreCommandOptions& options, const TimingTable& table) {
  if (!options.device.empty()) return load_device(options.device);
  if (!table.default_device.empty()) return load_device(table.default_device);
  throw ConfigError(fmt::format("{}: {}; name one with --device", table.file,
                                table.measured_on.empty()
                                    ? "the table does not say which device it was measured on"
                                    : "no device file for \"" + table.measured_on + "\""));
}

bool knows_all(const ImplementationSet& set, const TimingTable& table) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const TimedRow& row) { return set.find(row.kernel) != nullptr; });
}

// What was asked for; else the built-in set of this table and device if it held out the same rows.
std::optional<ImplementationSet> chosen_constants(const ScoreCommandOptions& options,
                                                  const TimingTable& table,
                                                  const DeviceSpec& device) {
  if (!options.constants.empty()) return load_implementations(options.constants);
  if (options.fit) return std::nullopt;
  for (const std::string& name : implementation_names()) {
    ImplementationSet set = load_implementations(name);
    if (set.table == table.adapter && set.device == device.name && set.seed == options.seed &&
        set.held_out_share == options.held_out && knows_all(set, table)) {
      return set;
    }
  }
  return std::nullopt;
}

void check(const ScoreCommandOptions& options) {
  if (!(options.held_out > 0 && options.held_out <= 1)) {
    throw ConfigError(
        fmt::format("--held-out: found {}, expected a share above 0, at most 1", options.held_out));
  }
  if (options.fit && !options.constants.empty()) {
    throw ConfigError("--fit and --constants: a fit has no constants given; choose one");
  }
  if (options.held_out == 1 && options.constants.empty()) {
    throw ConfigError("--held-out 1 leaves no row to fit on; give --constants");
  }
}

void deliver(const ScoreCommandOptions& options, const std::string& text) {
  if (options.out.empty()) {
    print(text);
  } else {
    write_text(options.out, text);
  }
}

std::string command_of(const ScoreCommandOptions& options) {
  const ScoreCommandOptions standard;
  std::string command = "indexpool score " + shell_quoted(options.table);
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", name, shell_quoted(value));
  };
  option("--adapter", options.adapter);
  option("--device", options.device);
  if (options.held_out != standard.held_out) {
    command += fmt::format(" --held-out {}", options.held_out);
  }
  if (options.seed != standard.seed) command += fmt::format(" --seed {}", options.seed);
  if (options.fit) command += " --fit";
  option("--constants", options.constants);
  option("--html", options.html);
  return command;
}

void write_page(const ScoreCommandOptions& options, const Score& score) {
  if (options.html.empty()) return;
  write_text(options.html, reports::score_html(score_page_of(score, command_of(options))));
  note("page: " + options.html);
}

// Records of our own kernels: the cost model predicts them, and nothing is fitted.
int score_measured(const ScoreCommandOptions& options, reports::Format format) {
  if (options.fit || !options.constants.empty() || !options.save.empty()) {
    throw ConfigError(options.table +
                      ": --fit, --constants and --save are of no use for records of indexpool "
                      "measure: the cost model has no constants of a kernel");
  }
  const std::vector<Record> records = read_records(options.table);
  const DeviceSpec device =
      load_device(options.device.empty() ? device_of(records, options.table) : options.device);
  const MeasuredScore measured = score_records(records, options.table, device);
  if (!options.rows.empty())
    write_text(options.rows, render(measured_rows(measured), reports::Format::csv));
  write_page(options, measured.score);
  deliver(options,
          measured_text(measured, format, options.explain, options.out.empty() && colour_wanted()));
  return exit_passed;
}

int score_with(const ScoreCommandOptions& options) {
  const reports::Format format = options.format.parsed();
  check(options);
  if (holds_records(options.table, options.adapter)) return score_measured(options, format);
  TimingTable table = read_timings(options.table, options.adapter);
  const DeviceSpec device = chosen_device(options, table);
  ScoreOptions how;
  how.held_out_share = options.held_out;
  how.seed = options.seed;
  how.constants = chosen_constants(options, table, device);
  Score score;
  {
    Progress progress;
    how.advance = [&progress](const std::string& kernel) { progress.show("fitting " + kernel); };
    score = score_table(std::move(table), device, how);
  }
  if (!options.save.empty()) write_text(options.save, to_json(score.constants));
  if (!options.rows.empty())
    write_text(options.rows, render(row_table(score), reports::Format::csv));
  write_page(options, score);
  const std::string text =
      score_text(score, device, format, options.explain, options.out.empty() && colour_wanted());
  deliver(options, text);
  return exit_passed;
}

std::function<int()> declare_score(CLI::App& app) {
  auto options = std::make_shared<ScoreCommandOptions>();
  app.add_option("table", options->table, "a file of measured times")->required();
  app.add_option("--adapter", options->adapter, "how to read it (known by its first lines)");
  app.add_option("--device", options->device, "name, or a JSON file (known from the table)");
  app.add_option("--held-out", options->held_out, "share of the shapes that no fit may see")
      ->capture_default_str();
  app.add_option("--seed", options->seed, "which shapes those are")->capture_default_str();
  app.add_flag("--fit", options->fit, "fit anew, though constants for this table are built in");
  app.add_option("--constants", options->constants,
                 "built-in constants or a JSON file, instead of a fit: all rows are held out");
  app.add_option("--save", options->save, "JSON file for the constants used");
  app.add_option("--rows", options->rows, "CSV file for measured and predicted time of each row");
  app.add_option("--html", options->html, "page with pictures, the worst rows and the constants");
  app.add_flag("--explain", options->explain, "with the constants, and a row term by term");
  app.add_option("--out", options->out, "file to write instead of standard output");
  options->format.declare(app);
  return [options] { return score_with(*options); };
}

}  // namespace

extern const Command score_command = {
    "score", "Predicted against measured times of a table, on rows no fit saw",
    "  indexpool score gemm_perf.csv\n"
    "  indexpool score gpu-stream_a100_40.txt --constants gpu-benches-stream.a100-sxm4-80gb\n"
    "  indexpool score mine.csv --adapter generic --device h200-sxm --seed 7 --explain\n"
    "  indexpool score topk.csv --fit --save constants.json --rows rows.csv\n"
    "  indexpool score measured/records.jsonl --device calibrated.json\n",
    declare_score};

}  // namespace indexpool::cli
