// indexpool run: a golden case through reference and kernels, beside what it would take at scale.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/reports/cli/attention_run.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/forecast.hpp"
#include "indexpool/reports/cli/forecast_record.hpp"
#include "indexpool/reports/cli/golden.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/policy_run.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::vector<std::string> cases;
  std::string model = "glm-5.3-flash", device = "a100-sxm4-80gb", tokens = "1M",
              out = "indexpool-report", policy{shipped_policy}, attention, target = "simt";
  FormatOption format;
};

// Golden cases arrive at once; here the last quarter is decoded, two drafts a step, so that every
// operation has something to do.
Schedule schedule_for(const Case& test_case) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : test_case.inputs.sequences) {
    longest = std::max(longest, sequence.length);
  }
  Schedule schedule;
  schedule.prefill_tokens =
      test_case.prefill > 0 && test_case.prefill < longest ? test_case.prefill : longest * 3 / 4;
  schedule.drafts = 2;
  return schedule;
}

std::vector<Record> verify_golden(const Case& test_case, const fs::path& path,
                                  const std::string& target, Progress& progress) {
  verify::Options how;
  how.target = target;
  how.schedule = schedule_for(test_case);
  std::error_code elsewhere;
  const fs::path here = fs::proximate(path, elsewhere);
  how.repeat = fmt::format("indexpool verify --case {} --prefill {} --drafts {}",
                           shell_quoted(here.empty() ? path.string() : here.string()),
                           how.schedule.prefill_tokens, how.schedule.drafts);
  if (target != "simt") how.repeat += " --target " + target;
  how.progress = [&](const std::string& step) { progress.show(test_case.name + ": " + step); };
  return verify::verify_case(test_case, how);
}

// To the record of the same operation and kernel; a kernel the case did not need gets a record that
// says so.
void attach(std::vector<Record>& records, const OperationForecast& forecast, std::int64_t tokens,
            const ArchitectureConfig& model) {
  if (!forecast.refusal.empty()) throw ConfigError(forecast.refusal);
  const auto found = std::find_if(records.begin(), records.end(), [&](const Record& record) {
    return record.op == forecast.op && record.implementation == forecast.kernel;
  });
  if (found == records.end()) {
    records.push_back(predicted_record(forecast, tokens, model));
  } else {
    store_forecast(forecast, tokens, model, *found);
  }
}

std::string command_of(const RunOptions& options) {
  const RunOptions standard;
  std::string command = "indexpool run";
  const auto option = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) command += fmt::format(" {} {}", name, shell_quoted(value));
  };
  option("--policy", options.policy, standard.policy);
  option("--attention", options.attention, standard.attention);
  option("--target", options.target, standard.target);
  for (const std::string& file : options.cases) command += " --case " + shell_quoted(file);
  option("--model", options.model, standard.model);
  option("--device", options.device, standard.device);
  option("--tokens", options.tokens, standard.tokens);
  option("--out", options.out, standard.out);
  return command;
}

std::vector<fs::path> case_paths(const RunOptions& options) {
  std::vector<fs::path> paths(options.cases.begin(), options.cases.end());
  if (paths.empty()) {
    for (const char* name : {"fp8_glm53", "glm53_bf16"}) paths.push_back(golden_case(name));
  }
  return paths;
}

// The shipped form: recorded cases, and what a layer of the model takes.
reports::ReportInput run_shipped(const RunOptions& options, const ArchitectureConfig& model,
                                 const DeviceSpec& device, std::int64_t tokens,
                                 Progress& progress) {
  const std::vector<fs::path> paths = case_paths(options);
  std::vector<Case> cases;
  for (const fs::path& path : paths) cases.push_back(read_case(path));
  reports::ReportInput input;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (Record& record : verify_golden(cases[i], paths[i], options.target, progress)) {
      record.environment.version = INDEXPOOL_VERSION;
      input.records.push_back(std::move(record));
    }
  }
  attach(input.records, pool_prompt(model, device, tokens), tokens, model);
  for (const OperationForecast& forecast : decode_step(model, device, tokens)) {
    attach(input.records, forecast, tokens, model);
  }
  progress.show("curves");
  input.title = fmt::format("Pooled indexer of {}, side by side", model.name);
  input.curves = context_curves(model, device);
  input.device = device;
  return input;
}

// Names, and what excludes each other.
void check_options(const RunOptions& options) {
  require_known("policy", options.policy, policy_names());
  require_known("target", options.target, {"simt", "cuda"});
  const bool shipped = options.policy == shipped_policy;
  if (!shipped && !options.cases.empty())
    throw ConfigError("--case holds the shipped form; another --policy draws its own operands");
  if (options.attention.empty()) return;
  require_known("attention", options.attention, attention_layer_names());
  if (!shipped || !options.cases.empty())
    throw ConfigError("--attention is a layer by itself: leave --policy and --case out");
}

reports::ReportInput run_of(const RunOptions& options, const ArchitectureConfig& model,
                            const DeviceSpec& device, std::int64_t tokens, Progress& progress) {
  if (!options.attention.empty())
    return run_attention({options.attention, options.target, AttentionRun{}.lengths, tokens},
                         device, progress);
  if (options.policy == shipped_policy)
    return run_shipped(options, model, device, tokens, progress);
  return run_policy({options.policy, options.target, PolicyRun{}.lengths, tokens}, device,
                    progress);
}

int run_with(const RunOptions& options) {
  const reports::Format format = options.format.parsed();
  const ArchitectureConfig model = load_architecture(options.model);
  const DeviceSpec device = load_device(options.device);
  const std::int64_t tokens = parse_size("--tokens", options.tokens);
  if (tokens < 1 || tokens > (std::int64_t{1} << 30)) {
    throw ConfigError(fmt::format("--tokens: found {}, expected 1 to 1G", options.tokens));
  }
  check_options(options);
  if (options.target == "cuda") kernels::make_cuda_target();  // absent: before anything runs
  require_writable_folder(options.out);
  Progress progress;
  reports::ReportInput input = run_of(options, model, device, tokens, progress);
  input.command = command_of(options);
  reports::write_report(options.out, input);
  note("report: " + options.out + "/report.html");
  print_records(input.records, format);
  return exit_code(input.records);
}

std::function<int()> declare_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  app.add_option("--case", options->cases,
                 "case files (safetensors); default: the golden GLM-5.3-Flash cases")
      ->expected(1, -1);
  app.add_option("--policy", options->policy, "policy of pooling (indexpool list policies)")
      ->capture_default_str();
  app.add_option("--attention", options->attention,
                 "layer of attention instead (indexpool list attention)");
  app.add_option("--target", options->target, "simt or cuda")->capture_default_str();
  app.add_option("--model", options->model, "model of the prediction")->capture_default_str();
  app.add_option("--device", options->device, "device of the prediction")->capture_default_str();
  app.add_option("--tokens", options->tokens, "context length of the prediction")
      ->capture_default_str();
  app.add_option("--out", options->out, "folder of the report")->capture_default_str();
  options->format.declare(app);
  return [options] { return run_with(*options); };
}

}  // namespace

extern const Command run_command = {
    "run", "Side by side on a golden case: reference, kernels on the CPU, and the cost model",
    "  indexpool run\n"
    "  indexpool run --policy gated --out gated\n"
    "  indexpool run --attention hybrid --out hybrid\n"
    "  indexpool run --tokens 10M --device h200-sxm --out at-10M\n",
    declare_run};

}  // namespace indexpool::cli
