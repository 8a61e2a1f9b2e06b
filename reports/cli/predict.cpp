// indexpool predict: memory and time of a model's indexer on a device.
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/forecast.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {
namespace {

using reports::Cell;
using reports::Table;

struct PredictOptions {
  std::string model = "glm-5.3-flash", device = "a100-sxm4-80gb", tokens = "1M", out;
  FormatOption format;
};

Table empty_table() {
  return {{{"tokens", "tokens", true},
           {"phase", "phase"},
           {"what", "what"},
           {"kernel", "kernel"},
           {"layers", "layers", true},
           {"bytes", "bytes", true},
           {"time_s", "time", true},
           {"time_low_s", "low", true},
           {"time_high_s", "high", true},
           {"limited_by", "limited by"}},
          {}};
}

Cell time_cell(Seconds time) { return {reports::format_seconds(time.value), time.value}; }
Cell bytes_cell(Bytes bytes) {
  return {reports::format_bytes(static_cast<double>(bytes.value)), bytes.value};
}

void add_memory(Table& table, std::int64_t tokens, const ArchitectureConfig& model,
                const char* what, Bytes bytes) {
  table.rows.push_back({{reports::format_tokens(tokens), tokens},
                        Cell("memory"),
                        Cell(what),
                        {},
                        {std::to_string(model.indexer_layers), model.indexer_layers},
                        bytes_cell(bytes),
                        {},
                        {},
                        {},
                        {}});
}

void add_time(Table& table, std::int64_t tokens, const char* phase, const std::string& what,
              const std::string& kernel, std::int64_t layers, const Prediction& prediction) {
  table.rows.push_back({{reports::format_tokens(tokens), tokens},
                        Cell(phase),
                        Cell(what),
                        Cell(kernel),
                        {std::to_string(layers), layers},
                        bytes_cell(prediction.hbm_bytes),
                        time_cell(prediction.time),
                        time_cell(prediction.low),
                        time_cell(prediction.high),
                        Cell(prediction.bound_by)});
}

void add_phase(Table& table, std::int64_t tokens, const char* phase,
               const ArchitectureConfig& model, const std::vector<OperationForecast>& operations) {
  for (const OperationForecast& each : operations) {
    if (!each.refusal.empty()) throw ConfigError(each.refusal);
    add_time(table, tokens, phase, each.op, each.kernel, 1, each.prediction);
  }
  add_time(table, tokens, phase, "all operations", "", model.indexer_layers,
           all_layers(operations, model.indexer_layers));
}

int predict_for(const PredictOptions& options) {
  const reports::Format format = options.format.parsed();
  const ArchitectureConfig model = load_architecture(options.model);
  const DeviceSpec device = load_device(options.device);
  constexpr std::int64_t most = std::int64_t{1} << 30;
  // Each chunk launches every kernel again, which `run` (pool in one launch) does not.
  const std::string prompt =
      fmt::format("prompt, {} chunks", reports::format_tokens(prefill_chunk));
  Table table = empty_table();
  for (const std::int64_t tokens : parse_sizes("--tokens", options.tokens)) {
    if (tokens < 1 || tokens > most) {
      throw ConfigError(fmt::format("--tokens: found {}, expected 1 to {} tokens", tokens, most));
    }
    add_memory(table, tokens, model, "pooled cache", indexer_cache_bytes(model, tokens));
    add_memory(table, tokens, model, "pooled, in whole pages", paged_cache_bytes(model, tokens));
    add_memory(table, tokens, model, "one key per token", unpooled_cache_bytes(model, tokens));
    add_phase(table, tokens, "decode step", model, decode_step(model, device, tokens));
    add_phase(table, tokens, prompt.c_str(), model, prefill(model, device, {tokens}).front());
  }
  if (options.out.empty()) {
    print(reports::render(table, format, colour_wanted()));
  } else {
    write_text(options.out, reports::render(table, format));
  }
  return exit_passed;
}

std::function<int()> declare_predict(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  app.add_option("--model", options->model, "name, or a JSON file")->capture_default_str();
  app.add_option("--device", options->device, "name, or a JSON file")->capture_default_str();
  app.add_option("--tokens", options->tokens, "context lengths, as in 4K,1M (K is 1024)")
      ->capture_default_str();
  app.add_option("--out", options->out, "file to write instead of standard output");
  options->format.declare(app);
  return [options] { return predict_for(*options); };
}

}  // namespace

extern const Command predict_command = {
    "predict", "Memory and time of a model's indexer on a device",
    "  indexpool predict --tokens 4K,1M\n"
    "  indexpool predict --model glm-5.3-flash --device h200-sxm --format csv --out h200.csv\n",
    declare_predict};

}  // namespace indexpool::cli
