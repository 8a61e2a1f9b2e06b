#include "indexpool/reports/cli/attention_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/policy/unplaced.hpp"
#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::cli {
namespace {

using kernels::AttentionArgs;
using kernels::OpArgs;

struct Layer {
  const Problem& problem;
  const DeviceSpec& device;
  DType storage;
  std::int32_t heads, dim;

  Layer(const Problem& of, const DeviceSpec& on)
      : problem(of),
        device(on),
        storage(attention_mode(of.mode).storage),
        heads(static_cast<std::int32_t>(of.indexer.index_n_heads)),
        dim(static_cast<std::int32_t>(of.indexer.index_head_dim)) {}

  LaunchForecast launch(Op op, const OpArgs& args, std::string phase, std::int64_t tokens,
                        bool shown = true) const {
    return {forecast_launch(std::string(to_string(op)), args, device), std::move(phase), tokens,
            shown};
  }
};

AttentionArgs safe_gate(const Layer& layer) {
  kernels::SafeGateArgs args;
  args.storage = layer.storage;
  args.rows = 1;
  args.heads = layer.heads, args.key_dim = layer.dim;
  return args;
}

kernels::LinearAttentionArgs linear(const Layer& layer, const kernels::LinearSequence& sequence) {
  kernels::LinearAttentionArgs args;
  args.storage = layer.storage;
  args.sequence_count = 1;
  args.heads = layer.heads, args.key_dim = args.value_dim = layer.dim;
  args.host_sequences = &sequence;
  return args;
}

AttentionArgs sparse(const Layer& layer, std::int64_t tokens) {
  const IndexerConfig& indexer = layer.problem.indexer;
  kernels::SparseAttentionArgs args;
  args.storage = layer.storage;
  args.rows = 1, args.tokens = tokens;
  args.heads = layer.heads;
  args.key_heads = layer.heads % 2 == 0 ? layer.heads / 2 : 1;
  args.head_dim = args.value_dim = layer.dim;
  args.width = static_cast<std::int32_t>(std::min(indexer.selection_width(), tokens));
  return args;
}

AttentionArgs fusion(const Layer& layer) {
  kernels::GateFusionArgs args;
  args.rows = 1;
  args.heads = layer.heads, args.value_dim = layer.dim;
  return args;
}

std::vector<LaunchForecast> hybrid(const Layer& layer, std::int64_t tokens) {
  const char* const step = "decode step, one token";
  const kernels::LinearSequence one{0, 1, 0},
      chunk{0, static_cast<std::int32_t>(std::min(tokens, prefill_chunk)), 0};
  return {layer.launch(Op::safe_gate, safe_gate(layer), step, 1),
          layer.launch(Op::linear_attention,
                       AttentionArgs(kernels::LinearStepArgs{linear(layer, one)}), step, 1),
          layer.launch(Op::linear_attention,
                       AttentionArgs(kernels::LinearChunkArgs{linear(layer, chunk)}),
                       "a prompt's first tokens", chunk.tokens, false),
          layer.launch(Op::sparse_attention, sparse(layer, tokens), step, 1),
          layer.launch(Op::gate_fusion, fusion(layer), step, 1)};
}

std::vector<LaunchForecast> composite(const Layer& layer, std::int64_t tokens) {
  const char* const prompt = "whole prompt";
  kernels::DecompressArgs first;
  first.storage = layer.storage, first.tokens = tokens;
  first.heads = layer.heads, first.head_dim = layer.dim;
  kernels::CompositeAttentionArgs second;
  second.storage = layer.storage, second.tokens = tokens;
  second.heads = layer.heads, second.head_dim = layer.dim;
  return {layer.launch(Op::composite_attention, AttentionArgs(first), prompt, tokens),
          layer.launch(Op::composite_attention, AttentionArgs(second), prompt, tokens)};
}

std::vector<LaunchForecast> feedback(const Layer& layer, std::int64_t tokens) {
  const char* const step = "after a step, all pooled vectors";
  const std::int64_t kpool = layer.problem.indexer.index_kpool, groups = tokens * layer.heads;
  kernels::CountAttendedArgs first;
  first.slots = groups * kpool;
  kernels::AttentionFeedbackArgs second;
  second.slots = first.slots, second.tokens = tokens;
  second.index_kpool = static_cast<std::int32_t>(kpool);
  std::vector<LaunchForecast> launches = {
      layer.launch(Op::attention_feedback, AttentionArgs(first), step, tokens),
      layer.launch(Op::attention_feedback, AttentionArgs(second), step, tokens)};
  const kernels::PolicyShape shape{
      "tfidf", attention_mode(layer.problem.mode), groups, kpool, layer.dim, layer.heads, tokens};
  for (const OpArgs& args : kernels::unplaced_weights(shape))
    launches.push_back(layer.launch(Op::pool_weights, args, step, tokens));
  return launches;
}

}  // namespace

std::vector<LaunchForecast> attention_forecast(const Problem& problem, std::int64_t tokens,
                                               const DeviceSpec& device) {
  const Layer layer(problem, device);
  if (problem.attention == "hybrid") return hybrid(layer, tokens);
  if (problem.attention == "composite") return composite(layer, tokens);
  return feedback(layer, tokens);
}

}  // namespace indexpool::cli
