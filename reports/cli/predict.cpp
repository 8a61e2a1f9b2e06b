// indexpool predict: memory of a model on its GPUs, and the time of its steps.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/forecast.hpp"
#include "indexpool/reports/cli/forecast_record.hpp"
#include "indexpool/reports/cli/indexer_work.hpp"
#include "indexpool/reports/cli/memory_options.hpp"
#include "indexpool/reports/cli/memory_page_of.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/predict_tables.hpp"
#include "indexpool/reports/cli/step_options.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

struct PredictOptions {
  std::string model = "glm-5.3-flash", config, device = "a100-sxm4-80gb", tokens = "1M", out;
  std::string only = "all", html;
  std::string command;  // the line that was given
  bool max_tokens = false, explain = false;
  MemoryOptions memory;
  StepOptions step;
  FormatOption format;
};

constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
constexpr std::int64_t most_timed = std::int64_t{1} << 30;  // kernels count positions in 31 bits

// A model by name, or from a checkpoint's config.json whatever its file is called.
Architecture chosen_model(const PredictOptions& options) {
  if (options.config.empty()) return load_model(options.model);
  const bool path =
      options.config.find('/') != std::string::npos || options.config.ends_with(".json");
  return load_model(path ? options.config : "./" + options.config);
}

std::vector<std::int64_t> chosen_tokens(const PredictOptions& options) {
  std::vector<std::int64_t> all = parse_sizes("--tokens", options.tokens);
  for (const std::int64_t tokens : all) {
    if (tokens < 1 || tokens > most_tokens) {
      throw ConfigError(
          fmt::format("--tokens: found {}, expected 1 to {} tokens (2^40)", tokens, most_tokens));
    }
  }
  return all;
}

std::string phase_text(step::Phase phase, const step::Size& size) {
  return phase == step::Phase::decode
             ? std::string("decode step")
             : fmt::format("prefill chunk, {} rows", reports::format_count(size.rows()));
}

// Whole steps at `tokens` of context, of the phases asked for.
void add_steps(PredictTables& tables, const PredictOptions& options, const Architecture& model,
               const DeviceSpec& device, const MemoryRequest& request, std::int64_t tokens) {
  for (const step::Phase phase : options.step.phases()) {
    const step::Serving serving{request, phase, options.step.expert_parallel};
    const step::Size size = step::size_of(serving, tokens, request.sequences);
    if (size.rows() > most_rows) {
      note(fmt::format("no times of steps beyond {} rows", most_rows));
      continue;
    }
    tables.add_step(
        tokens, phase_text(phase, size),
        step::predict_step(model, device, serving, size, indexer_work(model, request, phase),
                           options.step.parsed(phase)),
        device, options.explain);
  }
}

void note_hosts(const MemoryRequest& request) {
  constexpr std::int64_t of_a_host = 8;
  const std::int64_t gpus = request.tensor_parallel * request.context_parallel;
  if (gpus <= of_a_host) return;
  note(fmt::format("times take the {} GPUs of a stage as linked within one host", gpus));
}

// The indexer of one rank over whole prompts.
void add_prompts(PredictTables& tables, const ArchitectureConfig& model, const DeviceSpec& device,
                 const std::vector<std::int64_t>& tokens) {
  // Each chunk launches every kernel again, which `run` (pool in one launch) does not.
  const std::string phase =
      fmt::format("prompt, {} chunks: indexer", reports::format_tokens(prefill_chunk));
  const auto prompts = prefill(model, device, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tables.add_phase(tokens[i], phase, model, prompts[i]);
  }
}

void write(const PredictOptions& options, const PredictTables& tables, reports::Format format) {
  if (options.out.empty()) {
    print(tables.render(format, options.explain, colour_wanted()));
  } else {
    write_text(options.out, tables.render(format, options.explain, false));
  }
}

// Steps of every context up to the longest that kernels count, and the indexer over prompts.
void add_times(PredictTables& tables, const PredictOptions& options, const Architecture& model,
               const DeviceSpec& device, MemoryRequest request,
               const std::vector<std::int64_t>& tokens) {
  note_hosts(request);
  std::vector<std::int64_t> timed;
  for (const std::int64_t each : tokens) {
    if (each > most_timed) continue;
    timed.push_back(each);
    request.tokens = each;
    add_steps(tables, options, model, device, request, each);
  }
  const ArchitectureConfig indexer = indexer_view(model);
  const bool prompts = options.step.phases().back() == step::Phase::prefill;
  if (prompts && indexer.indexer_layers > 0) add_prompts(tables, indexer, device, timed);
  if (timed.size() < tokens.size()) note(fmt::format("no times beyond {} tokens", most_timed));
}

void write_page(const PredictOptions& options, const Architecture& model,
                const MemoryRequest& request, const std::vector<std::int64_t>& tokens,
                Bytes usable) {
  reports::MemoryPage page = memory_page_of(model, request, tokens, usable);
  page.command = options.command;
  if (options.only != "memory" && tokens.back() <= most_timed) {
    page.sections = cost_pictures(indexer_view(model), load_device(options.device), tokens.back());
  }
  write_text(options.html, reports::memory_html(page));
  note("page: " + options.html);
}

int predict_for(const PredictOptions& options) {
  const reports::Format format = options.format.parsed();
  require_known("part", options.only, {"all", "memory", "time"});
  options.step.require_valid();
  const Architecture model = chosen_model(options);
  const DeviceSpec device = load_device(options.device);
  MemoryRequest request = options.memory.parsed(model);
  const Bytes usable = options.memory.usable(device.memory);
  PredictTables tables;
  std::vector<std::int64_t> tokens = chosen_tokens(options);
  if (options.max_tokens) {
    const std::int64_t largest = largest_context(model, request, usable);
    tables.add_largest_context(largest, usable);
    tokens = {std::max<std::int64_t>(largest, 1)};
  }
  for (const std::int64_t each : tokens) {
    request.tokens = each;
    if (options.only == "time") continue;
    tables.add_indexer(indexer_view(model), each);
    tables.add_memory(model_memory(model, request), each, usable);
  }
  if (options.only != "memory" && !options.max_tokens) {
    add_times(tables, options, model, device, request, tokens);
  }
  write(options, tables, format);
  if (!options.html.empty()) write_page(options, model, request, tokens, usable);
  if (!model.parameters_left_out.empty()) {
    note(fmt::format("not counted: {} of {}", model.parameters_left_out, model.name));
  }
  return exit_passed;
}

// "indexpool predict --tokens 1M ...": the options as they were given.
std::string given_line(const CLI::App& app) {
  std::string line = "indexpool predict";
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    line += ' ' + option->get_name();
    if (option->get_expected_max() == 0) continue;  // a flag
    for (const std::string& value : option->results()) line += ' ' + shell_quoted(value);
  }
  return line;
}

std::function<int()> declare_predict(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  app.add_option("--model", options->model, "name, or a JSON file")->capture_default_str();
  app.add_option("--config", options->config, "a checkpoint's config.json, as published");
  app.add_option("--device", options->device, "name, or a JSON file")->capture_default_str();
  app.add_option("--tokens", options->tokens, "context lengths, as in 4K,1M (K is 1024)")
      ->capture_default_str();
  app.add_flag("--max-tokens", options->max_tokens, "instead: the largest context that fits");
  options->memory.declare(app);
  options->step.declare(app);
  app.add_option("--only", options->only, "memory, time or all")->capture_default_str();
  app.add_flag("--explain", options->explain, "with formula and source of each term");
  app.add_option("--out", options->out, "file to write instead of standard output");
  app.add_option("--html", options->html,
                 "page with waterfall, context curve, roofline and hierarchy, as well");
  options->format.declare(app);
  return [options, &app] {
    options->command = given_line(app);
    return predict_for(*options);
  };
}

}  // namespace

extern const Command predict_command = {
    "predict", "Memory of a model on its GPUs, and time of its steps",
    "  indexpool predict --tokens 4K,1M\n"
    "  indexpool predict --tokens 1M --device h200-sxm --gpus 8 --batch 16 --only time "
    "--phase decode --explain\n"
    "  indexpool predict --model glm-5.3-flash --device h200-sxm --format csv --out h200.csv\n"
    "  indexpool predict --tokens 1M,10M --device h200-sxm --gpus 8 --kv fp8 --only memory "
    "--explain\n"
    "  indexpool predict --tokens 1M,10M --device h200-sxm --gpus 8 --html memory.html\n"
    "  indexpool predict --config config.json --device h200-sxm --gpus 8 --batch 4 --max-tokens\n",
    declare_predict};

}  // namespace indexpool::cli
