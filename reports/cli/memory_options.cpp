#include "indexpool/reports/cli/memory_options.hpp"

#include <cmath>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/names.hpp"

namespace indexpool::cli {
namespace {

Engine parsed_engine(const std::string& name) {
  require_known("engine", name, {"packed", "vllm", "sglang"});
  return name == "packed" ? Engine::packed : name == "vllm" ? Engine::vllm : Engine::sglang;
}

// "fp8" is what the model's kernels take for FP8: latents of 512 + 64 as FlashMLA packs them.
KvFormat fp8_of(const Architecture& architecture) {
  if (architecture.kv_format == KvFormat::v4_packed) return KvFormat::v4_packed;
  return architecture.qk_rope_head_dim > 0 && architecture.kv_lora_rank == 512
             ? KvFormat::fp8_ds_mla
             : KvFormat::fp8;
}

std::optional<KvFormat> parsed_kv(const std::string& name, const Architecture& architecture) {
  using enum KvFormat;
  if (name == "auto") return std::nullopt;
  if (name == "fp8") return fp8_of(architecture);
  std::vector<std::string> known = {"auto", "fp8"};
  for (const KvFormat format : {f32, bf16, fp8_scaled, fp8_ds_mla, v4_packed}) {
    if (name == to_string(format)) return format;
    known.emplace_back(to_string(format));
  }
  require_known("format of the KV cache", name, known);
  return std::nullopt;
}

std::optional<IndexFormat> parsed_index(const std::string& name) {
  using enum IndexFormat;
  if (name == "auto") return std::nullopt;
  std::vector<std::string> known = {"auto"};
  for (const IndexFormat format : {fp8, mxfp4, bf16, f32}) {
    if (name == to_string(format)) return format;
    known.emplace_back(to_string(format));
  }
  require_known("format of the index keys", name, known);
  return std::nullopt;
}

std::optional<ParameterFormat> parsed_parameters(const std::string& name) {
  require_known("format of the parameters", name, {"checkpoint", "bf16", "fp8"});
  if (name == "checkpoint") return std::nullopt;
  return name == "bf16" ? ParameterFormat::bf16 : ParameterFormat::fp8_block;
}

void require_positive(const char* option, std::int64_t value) {
  if (value < 1 || value > (std::int64_t{1} << 24)) {
    throw ConfigError(fmt::format("{}: found {}, expected 1 to 16777216", option, value));
  }
}

// --gpus alone is tensor parallelism; with others, their product.
std::int64_t ranks(const MemoryOptions& options) {
  require_positive("--cp", options.cp);
  require_positive("--pp", options.pp);
  if (options.tp != 0) require_positive("--tp", options.tp);
  const std::int64_t others =
      checked_product(options.cp, options.pp, "ranks of context and pipeline parallelism");
  if (options.gpus == 0) return options.tp == 0 ? 1 : options.tp;
  require_positive("--gpus", options.gpus);
  const std::int64_t tp = options.tp != 0 ? options.tp : options.gpus / others;
  if (checked_product(tp, others, "GPUs") != options.gpus) {
    throw ConfigError(fmt::format("--gpus: found {}, but --tp {} x --cp {} x --pp {} are {} GPUs",
                                  options.gpus, tp, options.cp, options.pp, tp * others));
  }
  return tp;
}

}  // namespace

void MemoryOptions::declare(CLI::App& app) {
  app.add_option("--engine", engine, "whose pages and work buffers: vllm, sglang, or packed (none)")
      ->capture_default_str();
  app.add_option("--kv", kv,
                 "latents or keys and values: auto, bf16, fp8, fp8_scaled, fp8_ds_mla, "
                 "v4_packed, f32")
      ->capture_default_str();
  app.add_option("--index", index, "index keys: auto, fp8, mxfp4, bf16, f32")
      ->capture_default_str();
  app.add_option("--parameters", parameters, "checkpoint, bf16 or fp8 (128 x 128 blocks)")
      ->capture_default_str();
  app.add_option("--gpus", gpus, "GPUs; without --tp, --cp, --pp all of them split tensors");
  app.add_option("--tp", tp, "ranks that split tensors (the indexer is whole on each)");
  app.add_option("--cp", cp, "ranks that split the tokens of a cache")->capture_default_str();
  app.add_option("--pp", pp, "stages that split the layers")->capture_default_str();
  app.add_option("--batch", batch, "sequences of that length")->capture_default_str();
  app.add_option("--drafts", drafts, "speculative tokens")->capture_default_str();
  app.add_option("--prefill-chunk", prefill_chunk, "query rows of a step")->capture_default_str();
  app.add_option("--logits-mb", logits_mb, "budget of a prefill's logits in MiB (vLLM's is 512)");
  app.add_option("--utilization", utilization, "share of the device's memory that may be used")
      ->capture_default_str();
  app.add_flag("--prefix-cache", prefix_cache, "keep recurrent states of a prompt's blocks");
  app.add_flag("--unpooled", unpooled, "one index key a token");
}

MemoryRequest MemoryOptions::parsed(const Architecture& architecture) const {
  MemoryRequest request;
  request.engine = parsed_engine(engine);
  request.kv = parsed_kv(kv, architecture);
  request.index = parsed_index(index);
  request.parameters = parsed_parameters(parameters);
  request.tensor_parallel = ranks(*this);
  request.context_parallel = cp;
  request.pipeline_parallel = pp;
  request.sequences = batch;
  request.drafts = drafts;
  request.prefill_chunk = prefill_chunk;
  if (logits_mb != 0) {
    require_positive("--logits-mb", logits_mb);
    request.logits_budget = Bytes(logits_mb << 20);
  }
  request.prefix_cache = prefix_cache;
  request.pooled = !unpooled;
  require_positive("--batch", batch);
  require_positive("--prefill-chunk", prefill_chunk);
  if (!(utilization > 0) || utilization > 1) {
    throw ConfigError(fmt::format("--utilization: found {}, expected a share above 0 and at most 1",
                                  utilization));
  }
  return request;
}

Bytes MemoryOptions::usable(Bytes device_memory) const {
  return Bytes(static_cast<std::int64_t>(
      std::floor(utilization * static_cast<double>(device_memory.value))));
}

}  // namespace indexpool::cli
