// DeepSeek-V4: sliding windows everywhere, and compressed history in layers of ratio 4 (with an
// indexer) or 128. Field names and defaults as in Hugging Face transformers, models/deepseek_v4.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/checkpoint_families.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t sparse_ratio = 4;  // compressed sparse attention; larger ratios have none

LayerSpec layer_of_ratio(std::int64_t ratio) {
  if (ratio == 0) return {AttentionKind::window, MlpKind::moe, false, 0};
  return {AttentionKind::compressed, MlpKind::moe, ratio == sparse_ratio, ratio};
}

LayerSpec layer_of_type(const JsonValue& entry) {
  const std::string type = entry.text();
  if (type == "sliding_attention") return layer_of_ratio(0);
  if (type == "compressed_sparse_attention") return layer_of_ratio(sparse_ratio);
  if (type == "heavily_compressed_attention") return layer_of_ratio(128);
  entry.fail(
      fmt::format("unknown layer type \"{}\", expected sliding_attention, "
                  "compressed_sparse_attention or heavily_compressed_attention",
                  type));
}

// compress_ratios has an entry for each layer and may have one for each drafting layer.
void read_ratios(const ConfigReader& config, Architecture& architecture, std::int64_t layers,
                 std::int64_t drafts) {
  const JsonValue list = config.at("compress_ratios");
  const std::vector<JsonValue> ratios = list.array();
  const auto found = static_cast<std::int64_t>(ratios.size());
  if (found != layers && found != layers + drafts) {
    list.fail(
        fmt::format("found {} entries, expected {} (num_hidden_layers), or {} with "
                    "num_nextn_predict_layers",
                    found, layers, layers + drafts));
  }
  for (std::int64_t i = 0; i < found; ++i) {
    const JsonValue& entry = ratios[static_cast<std::size_t>(i)];
    const std::int64_t ratio = whole_number(entry, 0, largest_width);
    if (ratio != 0 && ratio != sparse_ratio && ratio != 128) {
      entry.fail(fmt::format("unknown compress ratio {}, expected 0, 4 or 128", ratio));
    }
    (i < layers ? architecture.layers : architecture.draft_layers).push_back(layer_of_ratio(ratio));
  }
}

void read_layers(const ConfigReader& config, Architecture& architecture) {
  const std::int64_t layers = config.size("num_hidden_layers", largest_layers);
  const std::int64_t drafts = config.size_or("num_nextn_predict_layers", 0, 0, largest_layers);
  if (config.find("compress_ratios")) {
    read_ratios(config, architecture, layers, drafts);
  } else {
    for (const JsonValue& entry : config.by_layer("layer_types", layers)) {
      architecture.layers.push_back(layer_of_type(entry));
    }
  }
  architecture.draft_layers.resize(static_cast<std::size_t>(drafts), layer_of_ratio(0));
  const std::int64_t hashed = config.size_or("num_hash_layers", 3, 0, layers);
  for (std::int64_t i = 0; i < hashed && i < layers; ++i) {
    architecture.layers[static_cast<std::size_t>(i)].mlp = MlpKind::hash_moe;
  }
}

}  // namespace

void read_deepseek_v4(const ConfigReader& config, Architecture& architecture) {
  read_layers(config, architecture);
  architecture.head_dim = config.size("head_dim");
  architecture.q_lora_rank = config.size("q_lora_rank");
  architecture.o_groups = config.size("o_groups");
  architecture.o_lora_rank = config.size("o_lora_rank");
  architecture.qk_rope_head_dim = config.size_or("qk_rope_head_dim", 64, 0, architecture.head_dim);
  architecture.sliding_window = config.size("sliding_window");
  architecture.hc_mult = config.size_or("hc_mult", 1);
  Mixture& mixture = architecture.mixture;
  mixture.routed = config.size("n_routed_experts");
  mixture.shared = config.size_or("n_shared_experts", 0, 0);
  mixture.per_token = config.size("num_experts_per_tok");
  mixture.intermediate = mixture.shared_intermediate = config.size("moe_intermediate_size");
  IndexerConfig& indexer = architecture.indexer;
  indexer.index_n_heads = config.size("index_n_heads");
  indexer.index_head_dim = config.size("index_head_dim");
  indexer.index_kpool = sparse_ratio;
  // Published in entries of four tokens; here, as everywhere, in tokens.
  indexer.index_topk = config.size("index_topk") * sparse_ratio;
  indexer.index_kpool_always_select_tail = false;
  architecture.pooling = IndexPooling::csa;
  architecture.kv_format = KvFormat::v4_packed;
  architecture.numeric_mode = "vllm_fp8";
  architecture.indexer_in_linear_format = true;
  architecture.scale_bytes = 1;  // UE8M0
}

}  // namespace indexpool
