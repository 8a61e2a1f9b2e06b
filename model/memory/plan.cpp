#include "indexpool/model/memory/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/stage.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t largest_tokens = std::int64_t{1} << 40;

void check(std::int64_t value, std::int64_t least, std::int64_t most, const char* what) {
  if (value >= least && value <= most) return;
  throw ConfigError(fmt::format("{}: found {}, expected {} to {}", what, value, least, most));
}

void check_request(const Architecture& architecture, const MemoryRequest& request) {
  check(request.tokens, 1, largest_tokens, "tokens of a sequence");
  check(request.sequences, 1, std::int64_t{1} << 24, "sequences");
  check(request.tensor_parallel, 1, 1 << 16, "ranks of tensor parallelism");
  check(request.context_parallel, 1, 1 << 16, "ranks of context parallelism");
  check(request.pipeline_parallel, 1, static_cast<std::int64_t>(architecture.layers.size()),
        "stages of pipeline parallelism");
  check(request.drafts, 0, 64, "drafted tokens");
  check(request.prefill_chunk, 1, std::int64_t{1} << 24, "tokens of a prefill chunk");
  if (request.logits_budget) {
    check(request.logits_budget->value, 1, std::int64_t{1} << 50, "bytes of the logits' budget");
  }
  if (architecture.num_attention_heads % request.tensor_parallel != 0) {
    throw ConfigError(fmt::format(
        "{} attention heads cannot be split over {} ranks of tensor parallelism; take a number "
        "that divides them",
        architecture.num_attention_heads, request.tensor_parallel));
  }
  if (request.drafts > 0 && architecture.draft_layers.empty()) {
    throw ConfigError(
        fmt::format("{} has no layers that draft tokens; leave drafts at 0", architecture.name));
  }
}

// Projections and experts in another format than the checkpoint's.
Architecture in_format(const Architecture& architecture, const MemoryRequest& request) {
  Architecture changed = architecture;
  if (request.parameters) changed.linear_format = changed.expert_format = *request.parameters;
  return changed;
}

StageMemory stage_memory(const Architecture& architecture, const MemoryRequest& request,
                         std::int64_t index) {
  const auto all = static_cast<std::int64_t>(architecture.layers.size());
  const std::int64_t stages = request.pipeline_parallel;
  // The first stages take one layer more where layers are left over.
  const std::int64_t first = index * (all / stages) + std::min(index, all % stages);
  const std::int64_t count = all / stages + (index < all % stages ? 1 : 0);
  Stage stage(architecture, request,
              {architecture.layers.begin() + first, architecture.layers.begin() + first + count},
              index == 0, index + 1 == stages);
  add_parameters(stage);
  add_caches(stage);
  add_tables(stage);
  add_workspaces(stage);
  StageMemory memory;
  memory.first_layer = first;
  memory.layers = count;
  memory.terms = stage.take_terms();
  for (const MemoryTerm& term : memory.terms) {
    memory.total = Bytes(checked_sum(memory.total.value, term.bytes.value, "bytes of a GPU"));
  }
  return memory;
}

template <class Has>
Bytes sum_of(const ModelMemory& memory, Has has) {
  Bytes sum;
  for (const MemoryTerm& term : memory.on_one_gpu().terms) {
    if (has(term)) sum += term.bytes;
  }
  return sum;
}

}  // namespace

const char* to_string(Engine engine) {
  switch (engine) {
    case Engine::packed:
      return "packed";
    case Engine::vllm:
      return "vllm";
    case Engine::sglang:
      return "sglang";
  }
  return "unknown";
}

const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::parameters:
      return "parameters";
    case MemoryKind::cache:
      return "cache";
    case MemoryKind::state:
      return "state";
    case MemoryKind::table:
      return "table";
    case MemoryKind::workspace:
      return "workspace";
    case MemoryKind::activation:
      return "activation";
    case MemoryKind::allocator:
      return "allocator";
  }
  return "unknown";
}

ModelMemory model_memory(const Architecture& architecture, const MemoryRequest& request) {
  check_request(architecture, request);
  const Architecture changed = in_format(architecture, request);
  ModelMemory memory;
  memory.gpus_per_stage = request.tensor_parallel * request.context_parallel;
  for (std::int64_t i = 0; i < request.pipeline_parallel; ++i) {
    memory.stages.push_back(stage_memory(changed, request, i));
    const Bytes total = memory.stages.back().total;
    if (total > memory.on_one_gpu().total) memory.fullest = memory.stages.size() - 1;
    memory.all_gpus =
        Bytes(checked_sum(memory.all_gpus.value,
                          checked_product(total.value, memory.gpus_per_stage, "bytes of all GPUs"),
                          "bytes of all GPUs"));
  }
  return memory;
}

Bytes bytes_of(const ModelMemory& memory, MemoryKind kind) {
  return sum_of(memory, [&](const MemoryTerm& term) { return term.kind == kind; });
}

Bytes bytes_of(const ModelMemory& memory, const std::string& name) {
  return sum_of(memory, [&](const MemoryTerm& term) { return term.name == name; });
}

std::int64_t largest_context(const Architecture& architecture, MemoryRequest request,
                             Bytes usable) {
  const auto fits = [&](std::int64_t tokens) {
    request.tokens = tokens;
    try {
      return model_memory(architecture, request).on_one_gpu().total <= usable;
    } catch (const ConfigError&) {
      if (tokens == 1) throw;  // not for its size
      return false;            // beyond 63 bits
    }
  };
  if (!fits(1)) return 0;
  std::int64_t low = 1, high = largest_tokens + 1;  // low fits, high does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

TokenBytes token_bytes(const Architecture& architecture, const MemoryRequest& request) {
  const KvFormat kv = request.kv.value_or(architecture.kv_format);
  const IndexFormat index = request.index.value_or(architecture.index_format);
  const auto per_key =
      static_cast<double>(request.pooled ? architecture.tokens_per_key() : std::int64_t{1});
  TokenBytes bytes;
  for (const LayerSpec& layer : architecture.layers) {
    if (layer.indexer) {
      bytes.indexer += static_cast<double>(index_key_bytes(architecture, index)) / per_key;
    }
    if (layer.attention == AttentionKind::window) continue;
    const bool together =
        layer.attention == AttentionKind::pooled_form && !architecture.form.of_one_token;
    const std::int64_t tokens = layer.compress_ratio > 0 ? layer.compress_ratio
                                : together               ? architecture.form.vectors
                                                         : 1;
    bytes.all +=
        static_cast<double>(kv_entry_bytes(architecture, layer, kv)) / static_cast<double>(tokens);
  }
  bytes.all += bytes.indexer;
  return bytes;
}

}  // namespace indexpool
