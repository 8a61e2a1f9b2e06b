#include "indexpool/model/architecture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

[[noreturn]] void refuse(KvFormat format, const LayerSpec& layer, const char* hint) {
  throw ConfigError(fmt::format("a {} layer does not store its cache as {}; {}",
                                to_string(layer.attention), to_string(format), hint));
}

std::int64_t latent_bytes(const Architecture& architecture, const LayerSpec& layer,
                          KvFormat format) {
  const std::int64_t latent = architecture.kv_lora_rank, rope = architecture.qk_rope_head_dim;
  switch (format) {
    case KvFormat::f32:
      return 4 * (latent + rope);
    case KvFormat::bf16:
      return 2 * (latent + rope);
    case KvFormat::fp8:
      return latent + rope;
    case KvFormat::fp8_scaled:
      return latent + 4 * divided_up(latent, 128) + 2 * rope;
    case KvFormat::fp8_ds_mla:
      if (latent != 512 || rope > 64) refuse(format, layer, "it is made for 512 + 64 elements");
      return 512 + 4 * 4 + 2 * 64;
    case KvFormat::v4_packed:
      break;
  }
  refuse(format, layer, "take f32, bf16, fp8, fp8_scaled or fp8_ds_mla");
}

// Codes of the part without rotation, a UE8M0 scale for 64 of them, the rotated part in bf16.
std::int64_t v4_packed_bytes(const Architecture& architecture) {
  const std::int64_t codes = architecture.head_dim - architecture.qk_rope_head_dim;
  const std::int64_t bytes = codes + 2 * architecture.qk_rope_head_dim + divided_up(codes, 64);
  return divided_up(bytes, 8) * 8;
}

std::int64_t element_bytes(const LayerSpec& layer, KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return 4;
    case KvFormat::bf16:
      return 2;
    case KvFormat::fp8:
      return 1;
    default:
      refuse(format, layer, "take f32, bf16 or fp8");
  }
}

}  // namespace

const char* to_string(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::latent:
      return "latent";
    case AttentionKind::grouped_query:
      return "grouped-query";
    case AttentionKind::kda:
      return "KDA";
    case AttentionKind::gated_delta:
      return "gated-delta";
    case AttentionKind::window:
      return "window";
    case AttentionKind::compressed:
      return "compressed";
    case AttentionKind::pooled_form:
      return "pooled";
  }
  return "unknown";
}

const char* to_string(IndexFormat format) {
  switch (format) {
    case IndexFormat::fp8:
      return "fp8";
    case IndexFormat::mxfp4:
      return "mxfp4";
    case IndexFormat::bf16:
      return "bf16";
    case IndexFormat::f32:
      return "f32";
  }
  return "unknown";
}

const char* to_string(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return "f32";
    case KvFormat::bf16:
      return "bf16";
    case KvFormat::fp8:
      return "fp8";
    case KvFormat::fp8_scaled:
      return "fp8_scaled";
    case KvFormat::fp8_ds_mla:
      return "fp8_ds_mla";
    case KvFormat::v4_packed:
      return "v4_packed";
  }
  return "unknown";
}

std::int64_t Architecture::indexer_layers() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const LayerSpec& layer) { return layer.indexer; });
}

ArchitectureConfig indexer_view(const Architecture& architecture) {
  ArchitectureConfig view;
  view.name = architecture.name;
  view.source = architecture.source;
  view.indexer = architecture.indexer;
  view.layers = static_cast<std::int64_t>(architecture.layers.size());
  // A published form stands where an indexer would: its layers are those of the model it is put in.
  view.indexer_layers = std::count_if(
      architecture.layers.begin(), architecture.layers.end(), [](const LayerSpec& layer) {
        return layer.indexer || layer.attention == AttentionKind::pooled_form;
      });
  view.hidden_size = architecture.hidden_size;
  view.q_lora_rank = architecture.q_lora_rank;
  view.kv_lora_rank = architecture.kv_lora_rank;
  view.max_position_embeddings = architecture.max_position_embeddings;
  view.numeric_mode = architecture.numeric_mode;
  view.states_per_page = architecture.states_per_page;
  return view;
}

std::int64_t index_key_bytes(const Architecture& architecture, IndexFormat format) {
  const std::int64_t dim = architecture.indexer.index_head_dim;
  switch (format) {
    case IndexFormat::fp8:
      return dim + 4 * divided_up(dim, 128);
    case IndexFormat::mxfp4:
      return divided_up(dim, 2) + divided_up(dim, 32);
    case IndexFormat::bf16:
      return 2 * dim;
    case IndexFormat::f32:
      return 4 * dim;
  }
  return 0;
}

std::int64_t kv_entry_bytes(const Architecture& architecture, const LayerSpec& layer,
                            KvFormat format) {
  switch (layer.attention) {
    case AttentionKind::latent:
      return latent_bytes(architecture, layer, format);
    case AttentionKind::grouped_query:
      return 2 * architecture.num_key_value_heads * architecture.head_dim *
             element_bytes(layer, format);
    case AttentionKind::window:
    case AttentionKind::compressed:
      return format == KvFormat::v4_packed ? v4_packed_bytes(architecture)
                                           : architecture.head_dim * element_bytes(layer, format);
    case AttentionKind::pooled_form:
      return architecture.form.heads * (architecture.form.dim + architecture.form.kept) *
             element_bytes(layer, format);
    case AttentionKind::kda:
    case AttentionKind::gated_delta:
      return 0;
  }
  return 0;
}

}  // namespace indexpool
