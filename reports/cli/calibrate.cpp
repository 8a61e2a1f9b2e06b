// indexpool calibrate: a device file from measurements of the GPU that is present.
#include "indexpool/model/calibration/calibrate.hpp"

#include <cctype>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "indexpool/kernels/calibration/measure_device.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/device_json.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {
namespace {

struct CalibrateOptions {
  std::string out, name, base, date, samples, save_samples;
  bool quick = false;
  FormatOption format;
};

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

calibration::Samples taken(const CalibrateOptions& options) {
  if (!options.samples.empty()) return calibration::read_samples(options.samples);
  Progress progress;
  kernels::CalibrationOptions how;
  how.date = options.date.empty() ? today() : options.date;
  how.quick = options.quick;
  how.advance = [&progress](const std::string& what) { progress.show("measuring " + what); };
  return kernels::measure_device(how);
}

std::optional<DeviceSpec> chosen_base(const CalibrateOptions& options,
                                      const calibration::DeviceFacts& facts) {
  if (options.base == "none") return std::nullopt;
  if (!options.base.empty()) return load_device(options.base);
  return calibration::base_of(facts);
}

// "NVIDIA RTX 5000" -> "nvidia-rtx-5000".
std::string file_name(const std::string& device) {
  std::string name;
  for (const char c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

std::optional<Constant> find(const std::optional<DeviceSpec>& device, const std::string& name) {
  if (!device) return std::nullopt;
  for (const NamedConstant& each : named_constants(*device)) {
    if (each.name == name) return each.constant;
  }
  return std::nullopt;
}

reports::Cell number(double value) { return {fmt::format("{:.4g}", value), value}; }

// Sources are sentences: in a terminal's table they leave no room for the rest.
reports::Table constant_table(const DeviceSpec& device, const std::optional<DeviceSpec>& base,
                              bool with_sources) {
  reports::Table table;
  table.columns = {{"constant", "constant"},
                   {"value", "value", true},
                   {"low", "low", true},
                   {"high", "high", true},
                   {"kind", "kind"},
                   {"base_value", "base", true},
                   {"relative_change", "change", true}};
  if (with_sources) table.columns.push_back({"source", "source"});
  for (const auto& [name, constant] : named_constants(device)) {
    std::vector<reports::Cell> row = {reports::Cell(name), number(constant.value),
                                      number(constant.low), number(constant.high),
                                      reports::Cell(std::string(to_string(constant.kind)))};
    if (const auto before = find(base, name)) {
      const double change = constant.value / before->value - 1;
      row.push_back(number(before->value));
      row.emplace_back(fmt::format("{:+.1f} %", 100 * change), change);
    } else {
      row.insert(row.end(), {reports::Cell(), reports::Cell()});
    }
    if (with_sources) row.emplace_back(constant.source);
    table.rows.push_back(std::move(row));
  }
  return table;
}

int calibrate_with(const CalibrateOptions& options) {
  const reports::Format format = options.format.parsed();
  if (!options.base.empty() && options.base != "none") load_device(options.base);  // before the run
  if (!options.samples.empty() && (options.quick || !options.date.empty())) {
    throw ConfigError("--samples FILE was measured before: --quick and --date do not apply to it");
  }
  const calibration::Samples samples = taken(options);
  // First of all: a fit that fails can be repeated without the device.
  if (!options.save_samples.empty()) write_text(options.save_samples, to_json(samples));
  const std::optional<DeviceSpec> base = chosen_base(options, samples.facts);
  std::string name = options.name;
  if (name.empty()) name = base ? base->name : file_name(samples.facts.name);
  const DeviceSpec device = calibration::calibrate(samples, name, base);
  if (!options.out.empty()) write_text(options.out, to_json(device));
  print(render(constant_table(device, base, format != reports::Format::table), format));
  if (format == reports::Format::table) {
    print(fmt::format("\n{}: {}\n", device.name, device.source));
    if (!options.out.empty()) {
      print(fmt::format("Use it with: indexpool predict --device {}\n", options.out));
    }
  }
  return exit_passed;
}

std::function<int()> declare_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  app.add_option("--out", options->out, "JSON file for the device, as predict --device reads it");
  app.add_option("--name", options->name, "of the device in that file (that of the base)");
  app.add_option("--base", options->base,
                 "device with what cannot be measured: a name, a JSON file, or none (the built-in "
                 "one of the GPU's name)");
  app.add_flag("--quick", options->quick, "fewer repeats");
  app.add_option("--date", options->date, "of the measurement, in its sources (today)");
  app.add_option("--save-samples", options->save_samples, "JSON file for what was measured");
  app.add_option("--samples", options->samples,
                 "what a run saved, instead of the GPU: fits the constants again");
  options->format.declare(app);
  return [options] { return calibrate_with(*options); };
}

}  // namespace

extern const Command calibrate_command = {
    "calibrate", "Measures the GPU and writes a device file with the source of each constant",
    "  indexpool calibrate --out mine.json && indexpool predict --device mine.json\n"
    "  indexpool calibrate --quick --base h200-sxm --name my-h200 --out my-h200.json\n"
    "  indexpool calibrate --save-samples samples.json --format md\n"
    "  indexpool calibrate --samples samples.json --base none --out other.json\n",
    declare_calibrate};

}  // namespace indexpool::cli
