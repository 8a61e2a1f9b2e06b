// Where a device has measured implementations, and which operations they are of.
#include <algorithm>

#include "indexpool/model/step/timing.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

constexpr const char* gemm_table = "aiconfigurator-gemm.";
constexpr const char* attention_table = "aiconfigurator-attention.";

std::optional<ImplementationSet> set_for(const char* table, const DeviceSpec& device) {
  const std::string name = table + device.name;
  const std::vector<std::string> known = implementation_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) return std::nullopt;
  ImplementationSet set = load_implementations(name);
  if (set.device != device.name) return std::nullopt;
  return set;
}

// A dense product in bf16 with one set of parameters.
Measured measured_product(const MatrixProduct& product, const Size& size, const Machine& machine) {
  const bool fits = machine.gemm && product.copies == 1 && product.format == ParameterFormat::bf16;
  if (!fits) return {};
  return {&*machine.gemm, machine.gemm->find("gemm bf16"),
          GemmShape{size.rows(), product.n, product.k, bf16_bytes}};
}

// Keys and values in bf16, all of them, nothing shared between ranks.
Measured measured_attention(const Attention& a, const Size& size, const Machine& machine) {
  const bool fits = machine.attention && a.whole && a.selected == 0 && a.window == 0 &&
                    a.tokens_per_entry == 1 && a.context_ranks == 1 && a.key_dim == a.value_dim &&
                    a.entry_bytes == 2 * a.key_heads * a.key_dim * bf16_bytes;
  const bool prefill = size.rows_per_sequence > 1;
  if (!fits) return {};
  return {&*machine.attention,
          machine.attention->find(prefill ? "vllm_flash_attn, prefill" : "vllm_flash_attn, decode"),
          CacheShape{size.sequences, size.rows_per_sequence, size.tokens - size.rows_per_sequence,
                     1, a.heads, a.key_heads, a.key_dim, a.entry_bytes / a.key_heads, 0}};
}

}  // namespace

Machine::Machine(DeviceSpec spec, const StepOptions& step_options) : device(std::move(spec)) {
  options.graph_launch = step_options.graph_launch;
  if (!step_options.measured) return;
  gemm = set_for(gemm_table, device);
  attention = set_for(attention_table, device);
}

CostNumbers launch_beyond_graph(const Machine& machine) {
  if (machine.options.graph_launch) return {};
  const Constant &stream = machine.device.launch_s, &graph = machine.device.graph_launch_s;
  const double time = std::max(0.0, stream.value - graph.value);
  return {Seconds(time), Seconds(std::clamp(stream.low - graph.low, 0.0, time)),
          Seconds(std::max(time, stream.high - graph.high))};
}

Measured measured_for(const Shape& shape, const Size& size, const Machine& machine) {
  if (const auto* product = std::get_if<MatrixProduct>(&shape)) {
    return measured_product(*product, size, machine);
  }
  if (const auto* attention = std::get_if<Attention>(&shape)) {
    return measured_attention(*attention, size, machine);
  }
  return {};
}

}  // namespace indexpool::step
