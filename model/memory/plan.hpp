// Memory of a whole model on its GPUs, to the byte and term by term: parameters, caches as an
// engine pages them, states, tables, work buffers, what an allocator rounds up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool {

// Whose page layouts and work buffers.
enum class Engine {
  packed,  // none: every entry once, no pages, no work buffers
  vllm,
  sglang
};
const char* to_string(Engine engine);

struct MemoryRequest {
  std::int64_t tokens = 0;  // of each sequence, at most 2^40
  std::int64_t sequences = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t context_parallel = 1;   // ranks that share the caches of a sequence
  std::int64_t pipeline_parallel = 1;  // stages of consecutive layers
  std::int64_t drafts = 0;             // speculative tokens; above 0 the drafting layers count
  std::int64_t prefill_chunk = 8192;   // query rows of one step, at most
  Engine engine = Engine::vllm;
  std::optional<KvFormat> kv;                 // instead of the architecture's
  std::optional<IndexFormat> index;           // likewise
  std::optional<ParameterFormat> parameters;  // of projections and experts: bf16 or fp8_block
  std::optional<Bytes> logits_budget;         // of one prefill launch; default: the engine's
  bool prefix_cache = false;                  // keep a recurrent state for each block of the prompt
  bool pooled = true;                         // false: an index key for each token
};

// Terms by what they are, in the order of a waterfall.
enum class MemoryKind { parameters, cache, state, table, workspace, activation, allocator };
const char* to_string(MemoryKind kind);

struct MemoryTerm {
  MemoryKind kind = MemoryKind::cache;
  std::string name;
  Bytes bytes;              // on one GPU of the stage, all layers of the stage
  std::int64_t layers = 0;  // that have it; 0: not of layers
  std::string formula;      // "11 layers x 4096 pages x 8448 B"
  std::string source;       // of the rule
};

// The GPUs of a stage hold the same terms (the largest share where a split is uneven).
struct StageMemory {
  std::int64_t first_layer = 0, layers = 0;
  std::vector<MemoryTerm> terms;
  Bytes total;
};

struct ModelMemory {
  std::vector<StageMemory> stages;
  std::int64_t gpus_per_stage = 1;
  std::size_t fullest = 0;  // stage that needs most on a GPU
  Bytes all_gpus;
  const StageMemory& on_one_gpu() const { return stages[fullest]; }
};

// Throws ConfigError for sizes below 1 or beyond their bounds, splits that do not come out even,
// formats a layer cannot have, results beyond 63 bits.
ModelMemory model_memory(const Architecture& architecture, const MemoryRequest& request);

// The bytes of one kind of term, or with one name, on a GPU of the fullest stage.
Bytes bytes_of(const ModelMemory& memory, MemoryKind kind);
Bytes bytes_of(const ModelMemory& memory, const std::string& name);

// The most tokens a sequence may have so that every GPU needs at most `usable`; 0 when even one
// token does not fit, 2^40 when that fits. By bisection: the total grows with the tokens.
std::int64_t largest_context(const Architecture& architecture, MemoryRequest request, Bytes usable);

// Cache bytes of one token in all layers, without pages: latents or keys and values, and index
// keys. Entries for several tokens count their share.
struct TokenBytes {
  double all = 0, indexer = 0;
};
TokenBytes token_bytes(const Architecture& architecture, const MemoryRequest& request);

// How vLLM aligns the pages of a model with recurrent states: the tokens of a block, so that a page
// of latents holds a state, `align` tokens at a time (vllm/platforms/interface.py,
// _align_hybrid_block_size).
std::int64_t hybrid_block_tokens(Bytes state, std::int64_t token_entry_bytes, std::int64_t align);

// What PyTorch's caching allocator takes for one request: a multiple of 512 B, from 10 MiB on of
// 2 MiB (c10/cuda/CUDACachingAllocator). Below 10 MiB requests share segments, whose unused rest is
// not counted: it depends on the order of requests.
Bytes allocator_rounded(Bytes bytes);

}  // namespace indexpool
