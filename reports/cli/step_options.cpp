#include "indexpool/reports/cli/step_options.hpp"

#include <CLI/CLI.hpp>

#include "indexpool/reports/cli/names.hpp"

namespace indexpool::cli {

void StepOptions::declare(CLI::App& app) {
  app.add_option("--phase", phase, "of times: decode, prefill (the last chunk of a prompt) or all")
      ->capture_default_str();
  app.add_option("--launch", launch,
                 "graph, stream, or auto: a graph in decode, a stream in prefill")
      ->capture_default_str();
  app.add_flag("--one-stream", one_stream, "run the indexer and shared experts beside nothing");
  app.add_flag("--expert-parallel", expert_parallel,
               "whole routed experts on each rank of --tp, not a slice of all");
}

void StepOptions::require_valid() const {
  require_known("phase", phase, {"all", "decode", "prefill"});
  require_known("launch", launch, {"auto", "graph", "stream"});
}

std::vector<step::Phase> StepOptions::phases() const {
  if (phase == "decode") return {step::Phase::decode};
  if (phase == "prefill") return {step::Phase::prefill};
  return {step::Phase::decode, step::Phase::prefill};
}

step::StepOptions StepOptions::parsed(step::Phase of) const {
  step::StepOptions options;
  options.graph_launch = launch == "graph" || (launch == "auto" && of == step::Phase::decode);
  options.two_streams = !one_stream;
  return options;
}

}  // namespace indexpool::cli
