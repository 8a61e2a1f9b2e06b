// indexpool measure: our kernels on a device over a grid of shapes, beside what is predicted.
#include "indexpool/verify/measure/measure.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/measured_score.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/verify/measure/counters.hpp"
#include "indexpool/verify/measure/predicted.hpp"

namespace indexpool::cli {
namespace {

namespace timing = verify::timing;

struct MeasureCommandOptions {
  std::string grid = "latency", target = "cuda", device = "h200-sxm", counters, records, out;
  std::vector<std::string> ops;
  int samples = 20;
  std::uint64_t seed = 1;
  bool launch_once = false;
  FormatOption format;
};

std::string command_of(const MeasureCommandOptions& options) {
  std::string command =
      fmt::format("indexpool measure --grid {} --target {} --device {}", shell_quoted(options.grid),
                  options.target, shell_quoted(options.device));
  if (!options.ops.empty()) command += fmt::format(" --ops {}", fmt::join(options.ops, ","));
  if (options.launch_once) command += " --launch-once";
  if (options.seed != 1) command += fmt::format(" --seed {}", options.seed);
  return command;
}

timing::Grid chosen_grid(const MeasureCommandOptions& options) {
  for (const std::string& op : options.ops)
    require_known("operation", op, timing::operation_names());
  timing::Grid grid = timing::load_grid(options.grid);
  if (!options.ops.empty()) {
    std::erase_if(grid.points, [&](const timing::Point& point) {
      return std::ranges::find(options.ops, point.op) == options.ops.end();
    });
  }
  if (grid.points.empty()) {
    throw ConfigError(fmt::format("--ops: the grid {} holds none of them", grid.name));
  }
  return grid;
}

void check(const MeasureCommandOptions& options) {
  require_known("target", options.target, {"cuda", "simt"});
  if (options.samples < 1) {
    throw ConfigError(fmt::format("--samples: found {}, expected at least 1", options.samples));
  }
  if (!options.records.empty() && (options.launch_once || !options.counters.empty())) {
    throw ConfigError(
        "--records: the grid is not launched, so --launch-once and --counters have no "
        "meaning; choose one");
  }
  if (!options.counters.empty() && options.launch_once) {
    throw ConfigError(
        "--counters and --launch-once: the first reads what the second was profiled "
        "to write; choose one");
  }
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) throw ConfigError("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Record> run_grid(const timing::Grid& grid, const MeasureCommandOptions& options,
                             const DeviceSpec& device, Journal* journal) {
  const std::unique_ptr<kernels::Target> target =
      options.target == "cuda" ? kernels::make_cuda_target() : kernels::make_simt_target();
  timing::MeasureOptions how;
  how.device = device;
  how.samples = options.samples;
  how.seed = options.seed;
  how.launch_once = options.launch_once;
  how.repeat = command_of(options);
  Progress progress;
  std::vector<Record> all;
  for (std::size_t i = 0; i < grid.points.size(); ++i) {
    progress.show(fmt::format("{}/{} {}", i + 1, grid.points.size(), describe(grid.points[i])));
    std::vector<Record> records =
        timing::measure_point(*target, grid.points[i], grid.geometry, how);
    for (Record& record : records) record.environment.version = INDEXPOOL_VERSION;
    if (journal != nullptr) journal->append(records);
    all.insert(all.end(), records.begin(), records.end());
  }
  return all;
}

reports::Table counter_table(const std::vector<Record>& records) {
  reports::Table table{{{"kernel", "kernel"},
                        {"point", "point"},
                        {"unique_bytes", "each byte once", true},
                        {"predicted_dram_bytes", "predicted DRAM", true},
                        {"dram_read_bytes", "read", true},
                        {"dram_write_bytes", "written", true},
                        {"dram_over_predicted", "DRAM / predicted", true},
                        {"instructions_over_declared", "instructions / declared", true},
                        {"status", "status"}},
                       {}};
  const auto megabytes = [](double bytes) {
    return reports::Cell(fmt::format("{:.1f} MB", bytes / 1e6), bytes);
  };
  for (const Record& record : records) {
    const auto& values = record.values;
    const auto ratio = [&](const char* name) {
      const auto found = values.find(name);
      return found == values.end()
                 ? reports::Cell()
                 : reports::Cell(fmt::format("{:.4f}", found->second), found->second);
    };
    table.rows.push_back(
        {record.implementation, record.case_name,
         megabytes(values.at("work_unique_read_bytes") + values.at("work_unique_write_bytes")),
         megabytes(static_cast<double>(record.prediction->hbm_bytes.value)),
         megabytes(values.at("dram_read_bytes")), megabytes(values.at("dram_write_bytes")),
         ratio("dram_over_predicted"), ratio("instructions_over_declared"),
         reports::status_cell(record.verdict.status)});
  }
  return table;
}

int counters_with(const MeasureCommandOptions& options, const timing::Grid& grid,
                  const DeviceSpec& device, reports::Format format) {
  const auto launches = timing::read_counters(read_file(options.counters), options.counters);
  timing::CounterOptions how;
  how.repeat = command_of(options) + " --counters " + shell_quoted(options.counters);
  std::vector<Record> records = timing::counter_records(grid, launches, device, how);
  for (Record& record : records) record.environment.version = INDEXPOOL_VERSION;
  if (!options.out.empty()) {
    write_records(std::filesystem::path(options.out) / "records.jsonl", records);
  }
  print(render(counter_table(records), format, colour_wanted()));
  return exit_code(records);
}

void write_files(const std::string& folder, const std::vector<Record>& records,
                 const MeasuredScore* measured) {
  const std::filesystem::path path = folder;
  write_records(path / "records.jsonl", records);
  if (measured != nullptr)
    write_text(path / "summary.csv", render(measured_rows(*measured), reports::Format::csv));
  note("records: " + folder + "/records.jsonl");
}

// Records of an earlier run beside what is predicted today. They are written without the terms of
// their predictions, half of their size: `score --explain` works those out again.
int predict_anew(const MeasureCommandOptions& options, const DeviceSpec& device,
                 reports::Format format) {
  std::vector<Record> records = read_records(options.records);
  for (Record& record : records) record = timing::predicted_anew(std::move(record), device);
  const MeasuredScore measured = score_records(records, options.records, device);
  for (Record& record : records) record.prediction->terms.clear();
  if (!options.out.empty()) write_files(options.out, records, &measured);
  print(measured_text(measured, format, false, colour_wanted()));
  return exit_code(records);
}

bool any_measured(const std::vector<Record>& records) {
  return std::ranges::any_of(records, [](const Record& r) { return r.measurement.has_value(); });
}

int measure_with(const MeasureCommandOptions& options) {
  const reports::Format format = options.format.parsed();
  check(options);
  const DeviceSpec device = load_device(options.device);
  if (!options.records.empty()) return predict_anew(options, device, format);
  const timing::Grid grid = chosen_grid(options);
  if (!options.counters.empty()) return counters_with(options, grid, device, format);
  std::unique_ptr<Journal> journal;
  if (!options.out.empty()) journal = std::make_unique<Journal>(options.out, false);
  const std::vector<Record> records = run_grid(grid, options, device, journal.get());
  std::unique_ptr<MeasuredScore> measured;
  if (any_measured(records))
    measured = std::make_unique<MeasuredScore>(score_records(records, "grid " + grid.name, device));
  if (!options.out.empty()) write_files(options.out, records, measured.get());
  if (journal) journal->remove();
  if (measured == nullptr) {
    print_records(records, format);
    return exit_code(records);
  }
  print(measured_text(*measured, format, false, colour_wanted()));
  std::vector<Record> wrong;
  std::ranges::copy_if(records, std::back_inserter(wrong),
                       [](const Record& record) { return !record.measurement; });
  if (!wrong.empty() && format == reports::Format::table) print_records(wrong, format);
  return exit_code(records);
}

std::function<int()> declare_measure(CLI::App& app) {
  auto options = std::make_shared<MeasureCommandOptions>();
  app.add_option("--grid", options->grid,
                 fmt::format("{}, or a JSON file", fmt::join(timing::grid_names(), ", ")))
      ->capture_default_str();
  app.add_option(
         "--ops", options->ops,
         fmt::format("of the grid (default: all): {}", fmt::join(timing::operation_names(), ", ")))
      ->delimiter(',');
  app.add_option("--target", options->target, "cuda, or simt: the executor counts, without times")
      ->capture_default_str();
  app.add_option("--device", options->device, "that predictions are for: a name, or a JSON file")
      ->capture_default_str();
  app.add_option("--samples", options->samples, "of each time, fewer for long launches")
      ->capture_default_str();
  app.add_option("--seed", options->seed, "of what memory holds")->capture_default_str();
  app.add_flag("--launch-once", options->launch_once,
               "check each launch and time none: one launch per point, for a profiler");
  app.add_option("--counters", options->counters,
                 "CSV of ncu over a --launch-once run of the same grid: nothing runs");
  app.add_option("--records", options->records,
                 "records of an earlier run, to predict anew: nothing runs");
  app.add_option("--out", options->out, "folder for records.jsonl and summary.csv");
  options->format.declare(app);
  return [options] { return measure_with(*options); };
}

}  // namespace

extern const Command measure_command = {
    "measure", "Our kernels timed over a grid of shapes, beside the prediction",
    "  indexpool measure --device h200-sxm --out measured\n"
    "  indexpool measure --grid quick --target simt\n"
    "  indexpool measure --records measured/records.jsonl --device mine.json --out anew\n"
    "  indexpool score measured/records.jsonl --device calibrated.json --explain\n"
    "Hardware counters, one launch per point of the grid:\n"
    "  ncu --csv --page raw --print-units base --clock-control none --cache-control all \\\n"
    "    -k 'regex:_kernel|mma_logits|fma_logits|topk_row' --log-file ncu.csv \\\n"
    "    --metrics dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,"
    "smsp__inst_executed.sum \\\n"
    "    indexpool measure --grid counters --launch-once\n"
    "  indexpool measure --grid counters --counters ncu.csv --out counters\n",
    declare_measure};

}  // namespace indexpool::cli
