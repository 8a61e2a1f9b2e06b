// What is computed (indexer, numeric mode) and on what (architecture, device): values read from
// strict JSON. Every key is required, an unknown key is an error, and the error names the file and
// the JSON pointer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/dtype.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool {

// Geometry of a pooled indexer. Names are spelt as in the checkpoint.
struct IndexerConfig {
  std::int64_t index_n_heads = 32;
  std::int64_t index_head_dim = 128;
  std::int64_t index_topk = 2048;  // tokens; index_topk / index_kpool pools
  std::int64_t index_kpool = 4;
  bool index_kpool_always_select_tail = true;

  bool operator==(const IndexerConfig&) const = default;
  std::int64_t topk_pools() const { return index_topk / index_kpool; }
  // Columns of a row of selected tokens: index_topk, and index_kpool - 1 more with a forced tail.
  std::int64_t selection_width() const {
    return index_topk + (index_kpool_always_select_tail ? index_kpool - 1 : 0);
  }
};
// Throws ConfigError for sizes below 1, index_topk not a multiple of index_kpool, products that
// leave 63 bits. `where` prefixes the text ("file.json: /indexer").
void validate(const IndexerConfig& config, std::string_view where);

// How the pooled sum is rounded.
enum class PoolRounding {
  f32_accumulate,  // f32 numerator and denominator, one division, one rounding (vLLM, SGLang, ours)
  storage_products  // probabilities and products rounded to the storage dtype (transformers)
};
enum class ScaleRule {
  none,
  power_of_two,  // 2^ceil(log2(max(amax, 1e-4) / 448)): UE8M0 (vLLM, DeepSeek-V3.2)
  amax           // max(amax, 1e-4) / largest code (SGLang without scale_fmt; int8: / 127)
};

// The rounding steps between the inputs and the cache. A mode is one row of a table.
struct NumericMode {
  std::string name;
  DType storage = DType::bf16;  // keys, gate scores and queries as they arrive
  PoolRounding pool_rounding = PoolRounding::f32_accumulate;
  DType pooled = DType::bf16;  // the pooled key is rounded to this before the Hadamard
  bool hadamard = true;        // Sylvester order, f32, times head_dim^-0.5, rounded to `pooled`
  DType cache = DType::e4m3;   // dtype of a cached pool and of the query codes
  ScaleRule scale = ScaleRule::power_of_two;

  bool operator==(const NumericMode&) const = default;
  bool quantised() const { return scale != ScaleRule::none; }
};
// hf_f32, hf_bf16, hf_f16 (transformers); bf16 (unquantised, f32 accumulation: Ascend's cache);
// vllm_fp8, sglang_fp8; int8.
const std::vector<NumericMode>& numeric_modes();
const NumericMode& numeric_mode(std::string_view name);  // ConfigError with near names

// One kind of layer that keeps an indexer cache, and how many the model has.
struct ArchitectureConfig {
  std::string name, source;
  IndexerConfig indexer;
  std::int64_t layers = 0;
  std::int64_t indexer_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t max_position_embeddings = 0;
  std::string numeric_mode;
  std::int64_t states_per_page = 64;  // pools a page holds
};

// What a constant rests on: a run on the device itself, a publication, or neither.
enum class ConstantKind { published, measured, assumed };
std::string_view to_string(ConstantKind kind);

// A device constant with where it comes from and how far it may be off.
struct Constant {
  double value = 0;
  double low = 0, high = 0;
  std::string source;  // publication or measurement
  ConstantKind kind = ConstantKind::published;
};

struct DeviceSpec {
  std::string name, source;
  std::string compute_capability;  // "8.0"
  std::int64_t sm_count = 0;
  std::int64_t warps_per_sm = 0;
  Bytes memory, l2_capacity, shared_memory_per_sm;
  Constant sm_clock_hz;
  Constant hbm_peak_bytes_per_s;
  Constant hbm_read_bytes_per_s;   // reached by a pure read stream
  Constant hbm_write_bytes_per_s;  // reached by a pure write stream
  Constant hbm_copy_bytes_per_s;   // reached by a 1:1 mix
  Constant hbm_loaded_latency_s;   // for bytes in flight (Little's law)
  Constant l2_bytes_per_s;
  Constant l2_residency_bytes;     // footprint at which half is resident (logistic midpoint)
  Constant l2_residency_exponent;  // steepness of the roll-off
  Constant shared_bytes_per_clock_per_sm;
  Constant launch_s, graph_launch_s;
  std::map<std::string, Constant> matrix_flop_per_s;  // "bf16", "f16", "i8", "e4m3" (absent: none)
  Constant f32_flop_per_s;
  // Warp instructions of an SM: all that it issues, and what its integer and special pipes take.
  Constant issue_per_clock_per_sm, integer_per_clock_per_sm, special_per_clock_per_sm;
  // From one dependent step to the next on an idle device: a load that misses the L2, one that hits
  // it, one of shared memory, an atomic there, a shuffle, a barrier of a block, an FMA.
  Constant hbm_latency_s, l2_latency_s, shared_latency_s, atomic_latency_s, shuffle_latency_s,
      barrier_latency_s, arithmetic_latency_s;
  std::map<std::string, Constant> matrix_latency_s;  // of an mma on its accumulator, by dtype
  // To the other GPUs of a host, where there are any: bytes a GPU sends a second while it receives
  // as many (large messages), and the least time of an exchange of two GPUs.
  std::optional<Constant> link_bytes_per_s, link_latency_s;
};

// A name is looked up in the built-in tables, a text with '/' or ".json" is read from disk.
ArchitectureConfig load_architecture(const std::string& name_or_path);
DeviceSpec load_device(const std::string& name_or_path);
std::vector<std::string> architecture_names();
std::vector<std::string> device_names();

// The names nearest to `name` (edit distance), for "did you mean".
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known);

}  // namespace indexpool
