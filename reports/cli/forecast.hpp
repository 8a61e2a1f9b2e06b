// What a model's indexer takes on a device: the kernels' own declared work, put through the cost
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::cli {

// One operation of one layer. Without a kernel that takes it, `refusal` says why and the rest is 0.
struct OperationForecast {
  std::string op, kernel;
  Work work;
  Prediction prediction;
  std::string refusal;
};

// Of one launch by the first kernel that takes it; its arguments need not lie anywhere.
OperationForecast forecast_launch(std::string op, const kernels::OpArgs& args,
                                  const DeviceSpec& device);
// append, quantize_query, logits and topk for one new token of one sequence that then has `tokens`
// tokens; the token closes a pool, the dearest case of append.
std::vector<OperationForecast> decode_step(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device, std::int64_t tokens);
// pool, quantize_query, logits and topk for whole prompts of these lengths, each in
// chunks of `prefill_chunk` tokens one after the other. Their `work` stays empty. Long prompts are
// summed along lines between sampled chunks, so that any length takes milliseconds.
inline constexpr std::int64_t prefill_chunk = 8192;
std::vector<std::vector<OperationForecast>> prefill(const ArchitectureConfig& architecture,
                                                    const DeviceSpec& device,
                                                    const std::vector<std::int64_t>& tokens);
// pool alone, all tokens in one launch.
OperationForecast pool_prompt(const ArchitectureConfig& architecture, const DeviceSpec& device,
                              std::int64_t tokens);

// All operations of `step` times the layers that run them.
Prediction all_layers(const std::vector<OperationForecast>& step, std::int64_t layers);

// Memory and time from 4K to 10M tokens.
std::vector<reports::Curve> context_curves(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device);

}  // namespace indexpool::cli
