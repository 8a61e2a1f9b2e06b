#include "indexpool/reports/cli/attention_run.hpp"

#include <fmt/format.h>

#include "indexpool/model/attention_layer.hpp"
#include "indexpool/reports/cli/attention_forecast.hpp"
#include "indexpool/reports/cli/forecast_record.hpp"
#include "indexpool/reports/cli/worked_pages.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

using reports::Attachment;
using reports::Cell;

std::vector<Problem> problems_of(const AttentionRun& run) {
  const AttentionLayer& layer = find_attention_layer(run.attention);
  std::vector<Problem> problems;
  for (const std::string& mode : attention_mode_names()) {
    Problem problem;
    problem.attention = layer.name;
    problem.mode = mode;
    problem.lengths = run.lengths;
    problem.indexer.index_n_heads = layer.heads;
    problem.indexer.index_head_dim = layer.head_dim;
    problem.indexer.index_kpool = layer.index_kpool;
    problem.indexer.index_topk = layer.index_topk;
    validate(problem, "problem");
    problems.push_back(problem);
  }
  return problems;
}

// Predictions are of the layer at scale: a selection as wide as the shipped indexer's.
Problem at_scale(const Problem& problem) {
  Problem large = problem;
  if (find_attention_layer(problem.attention).selects)
    large.indexer.index_topk = IndexerConfig{}.index_topk;
  return large;
}

Attachment launches_of(const Problem& problem, const std::vector<LaunchForecast>& forecasts,
                       std::int64_t tokens, const DeviceSpec& device) {
  const IndexerConfig& indexer = problem.indexer;
  Attachment page{
      "attention-launches",
      "Launch by launch",
      fmt::format(
          "One layer in {}, {} heads of {} channels, {} tokens of context, on the {}. Times "
          "are of the bytes and operations that the kernels declare, which equal what the "
          "executor counts: instructions and chains of dependent ones are not declared, so "
          "a short launch takes longer than said here. No projection, no norm and no other "
          "layer is in them.",
          problem.mode, indexer.index_n_heads, indexer.index_head_dim,
          reports::format_tokens(tokens), device.name),
      {{{"kernel", "kernel"},
        {"phase", "phase"},
        {"tokens", "tokens", true},
        {"read", "read once", true},
        {"written", "written", true},
        {"time", "time", true},
        {"bound_by", "bound by"}},
       {}}};
  for (const LaunchForecast& launch : forecasts) {
    if (!launch.of.refusal.empty()) continue;
    const Work& work = launch.of.work;
    const auto read = static_cast<double>(work.unique_read.value),
               written = static_cast<double>(work.unique_write.value);
    const double seconds = launch.of.prediction.time.value;
    page.table.rows.push_back(
        {Cell(launch.of.kernel), Cell(launch.phase),
         Cell(std::to_string(launch.tokens), static_cast<double>(launch.tokens)),
         Cell(reports::format_bytes(read), read), Cell(reports::format_bytes(written), written),
         Cell(reports::format_seconds(seconds), seconds), Cell(launch.of.prediction.bound_by)});
  }
  return page;
}

}  // namespace

reports::ReportInput run_attention(const AttentionRun& run, const DeviceSpec& device,
                                   Progress& progress) {
  const AttentionLayer& layer = find_attention_layer(run.attention);
  reports::ReportInput input;
  for (const Problem& problem : problems_of(run)) {
    verify::Options how;
    how.target = run.target;
    how.repeat = repeat_line(problem);
    if (run.target != "simt") how.repeat += " --target " + run.target;
    how.progress = [&](const std::string& step) { progress.show(step); };
    std::vector<Record> records = verify::verify_problem(problem, how);
    const std::vector<LaunchForecast> forecasts =
        attention_forecast(at_scale(problem), run.tokens, device);
    for (const LaunchForecast& launch : forecasts)
      if (launch.shown) add_forecast(launch.of, run.tokens, records);
    input.records.insert(input.records.end(), records.begin(), records.end());
    if (problem.mode == "bf16")
      input.attachments.push_back(launches_of(at_scale(problem), forecasts, run.tokens, device));
  }
  for (Record& record : input.records) record.environment.version = INDEXPOOL_VERSION;
  input.title =
      fmt::format("Attention {} (article {}): {}", layer.name, layer.published, layer.formula);
  input.device = device;
  for (Attachment& page : worked_pages(run.attention, run.tokens))
    input.attachments.push_back(std::move(page));
  return input;
}

}  // namespace indexpool::cli
