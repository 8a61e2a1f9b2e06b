// Models with a latent cache: DeepSeek-V3.2, GLM-5 and GLM-5.2, and GLM-5.3-Flash with its Kimi
// delta attention. Field names and defaults as in Hugging Face transformers (models/glm5_next,
// models/glm_moe_dsa, models/deepseek_v32).
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/checkpoint_families.hpp"

namespace indexpool {
namespace {

void read_latent_sizes(const ConfigReader& config, Architecture& architecture) {
  architecture.q_lora_rank = config.size("q_lora_rank");
  architecture.kv_lora_rank = config.size("kv_lora_rank");
  architecture.qk_nope_head_dim = config.size("qk_nope_head_dim");
  architecture.qk_rope_head_dim = config.size_or("qk_rope_head_dim", 0, 0);
  architecture.v_head_dim = config.size("v_head_dim");
  const std::int64_t whole = architecture.qk_nope_head_dim + architecture.qk_rope_head_dim;
  if (config.size_or("qk_head_dim", whole) != whole) {
    config.at("qk_head_dim")
        .fail(fmt::format("found {}, but qk_nope_head_dim + qk_rope_head_dim is {}",
                          config.size("qk_head_dim"), whole));
  }
}

void read_experts(const ConfigReader& config, Architecture& architecture) {
  architecture.dense_intermediate = config.size("intermediate_size");
  Mixture& mixture = architecture.mixture;
  mixture.routed = config.size("n_routed_experts");
  mixture.shared = config.size_or("n_shared_experts", 0, 0);
  mixture.per_token = config.size("num_experts_per_tok");
  mixture.intermediate = mixture.shared_intermediate = config.size("moe_intermediate_size");
}

void read_index_sizes(const ConfigReader& config, Architecture& architecture) {
  IndexerConfig& indexer = architecture.indexer;
  indexer.index_n_heads = config.size("index_n_heads");
  indexer.index_head_dim = config.size("index_head_dim");
  indexer.index_topk = config.size("index_topk");
  indexer.index_kpool = config.size_or("index_kpool", 1);
  indexer.index_kpool_always_select_tail =
      indexer.index_kpool > 1 && config.flag_or("index_kpool_always_select_tail", true);
  architecture.pooling = indexer.index_kpool > 1 ? IndexPooling::kpool : IndexPooling::none;
  architecture.numeric_mode = "vllm_fp8";
}

bool is_sparse_mlp(const JsonValue& entry) {
  const std::string type = entry.text();
  if (type == "dense") return false;
  if (type == "sparse" || type == "moe") return true;
  entry.fail(fmt::format("unknown layer type \"{}\", expected dense or sparse", type));
}

// "dense" and "sparse" by layer, or the first few dense.
void read_mlp_kinds(const ConfigReader& config, Architecture& architecture,
                    std::int64_t dense_by_default) {
  const auto layers = static_cast<std::int64_t>(architecture.layers.size());
  if (config.find("mlp_layer_types")) {
    const std::vector<JsonValue> kinds = config.by_layer("mlp_layer_types", layers);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      architecture.layers[i].mlp = is_sparse_mlp(kinds[i]) ? MlpKind::moe : MlpKind::dense;
    }
    return;
  }
  const std::int64_t dense = config.size_or("first_k_dense_replace", dense_by_default, 0, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    architecture.layers[static_cast<std::size_t>(i)].mlp =
        i < dense ? MlpKind::dense : MlpKind::moe;
  }
}

bool is_full_indexer(const JsonValue& entry) {
  const std::string type = entry.text();
  if (type == "full" || type == "F") return true;
  if (type == "shared" || type == "S") return false;
  entry.fail(fmt::format("unknown indexer type \"{}\", expected full or shared", type));
}

// A list of "full" and "shared", or the rule of frequency and offset (IndexShare).
void read_indexer_kinds(const ConfigReader& config, Architecture& architecture) {
  const auto layers = static_cast<std::int64_t>(architecture.layers.size());
  std::vector<bool> full(architecture.layers.size(), true);
  if (config.find("indexer_types")) {
    const std::vector<JsonValue> kinds = config.by_layer("indexer_types", layers);
    for (std::size_t i = 0; i < kinds.size(); ++i) full[i] = is_full_indexer(kinds[i]);
  } else {
    const std::int64_t frequency = config.size_or("index_topk_freq", 1);
    const std::int64_t offset = config.size_or("index_skip_topk_offset", 2, 0);
    for (std::int64_t i = 0; i < layers; ++i) {
      full[static_cast<std::size_t>(i)] =
          std::max<std::int64_t>(i - offset + 1, 0) % frequency == 0;
    }
  }
  for (std::size_t i = 0; i < full.size(); ++i) {
    architecture.layers[i].indexer =
        architecture.layers[i].attention == AttentionKind::latent && full[i];
  }
}

AttentionKind glm_attention(const JsonValue& entry) {
  const std::string type = entry.text();
  if (type == "linear_attention") return AttentionKind::kda;
  if (type == "deepseek_sparse_attention" || type == "full_attention") return AttentionKind::latent;
  entry.fail(fmt::format(
      "unknown layer type \"{}\", expected linear_attention or deepseek_sparse_attention", type));
}

// Without a list, every fourth layer is sparse attention (Glm5NextTextConfig).
void read_glm_layer_types(const ConfigReader& config, Architecture& architecture) {
  const auto layers = static_cast<std::int64_t>(architecture.layers.size());
  if (config.find("layer_types")) {
    const std::vector<JsonValue> kinds = config.by_layer("layer_types", layers);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      architecture.layers[i].attention = glm_attention(kinds[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < architecture.layers.size(); ++i) {
    architecture.layers[i].attention = i % 4 == 3 ? AttentionKind::latent : AttentionKind::kda;
  }
}

// linear_attn_config lists the layers a second time; both must say the same.
void check_kda_layers(const ConfigReader& linear, const Architecture& architecture) {
  const std::optional<JsonValue> list = linear.find("kda_layers");
  if (!list) return;
  std::vector<bool> kda(architecture.layers.size(), false);
  const auto last = static_cast<std::int64_t>(kda.size()) - 1;
  for (const JsonValue& entry : list->array()) {
    kda[static_cast<std::size_t>(whole_number(entry, 0, last))] = true;
  }
  for (std::size_t i = 0; i < kda.size(); ++i) {
    if (kda[i] == (architecture.layers[i].attention == AttentionKind::kda)) continue;
    list->fail(fmt::format("layer {} {} linear attention here and {} by layer_types", i,
                           kda[i] ? "is" : "is not", kda[i] ? "is not" : "is"));
  }
}

void read_kda(const ConfigReader& config, Architecture& architecture) {
  const std::optional<JsonValue> nested = config.find("linear_attn_config");
  LinearAttention& linear = architecture.linear;
  if (nested) {
    const ConfigReader reader(*nested);
    linear.key_heads = linear.value_heads = reader.size("num_heads");
    linear.key_dim = linear.value_dim = reader.size("head_dim");
    linear.conv_kernel = reader.size("short_conv_kernel_size");
    check_kda_layers(reader, architecture);
  } else {
    linear.key_heads = linear.value_heads = config.size("linear_num_heads");
    linear.key_dim = linear.value_dim = config.size("linear_head_dim");
    linear.conv_kernel = config.size("linear_conv_kernel_dim");
  }
}

void add_layers(const ConfigReader& config, Architecture& architecture) {
  architecture.layers.resize(
      static_cast<std::size_t>(config.size("num_hidden_layers", largest_layers)));
  // Layers that draft: sparse attention with an indexer of its own, and experts.
  const std::int64_t drafts = config.size_or("num_nextn_predict_layers", 0, 0, largest_layers);
  architecture.draft_layers.assign(static_cast<std::size_t>(drafts),
                                   {AttentionKind::latent, MlpKind::moe, true, 0});
}

}  // namespace

void read_deepseek_v32(const ConfigReader& config, Architecture& architecture) {
  add_layers(config, architecture);
  read_latent_sizes(config, architecture);
  read_experts(config, architecture);
  read_index_sizes(config, architecture);
  read_mlp_kinds(config, architecture, 0);
  read_indexer_kinds(config, architecture);
  architecture.kv_format = KvFormat::fp8_ds_mla;
  // wq_b and wk are quantised like every other projection (DeepSeek-V3.2-Exp, inference/model.py).
  architecture.indexer_in_linear_format = true;
}

void read_glm_moe_dsa(const ConfigReader& config, Architecture& architecture) {
  read_deepseek_v32(config, architecture);
  architecture.indexer_in_linear_format = false;
}

void read_glm5_next(const ConfigReader& config, Architecture& architecture) {
  add_layers(config, architecture);
  read_glm_layer_types(config, architecture);
  read_latent_sizes(config, architecture);
  read_experts(config, architecture);
  read_index_sizes(config, architecture);
  read_mlp_kinds(config, architecture, 3);
  read_indexer_kinds(config, architecture);
  read_kda(config, architecture);
  architecture.hc_mult = config.size_or("hc_mult", 1);
  architecture.kv_format = KvFormat::bf16;
}

}  // namespace indexpool
