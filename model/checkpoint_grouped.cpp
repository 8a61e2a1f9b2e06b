// Models with keys and values per head: Qwen4 (QSA, mean-pooled index keys) and MiniMax-M3 (index
// keys per token, scores pooled by blocks). Field names as in their published config.json.
#include <fmt/format.h>

#include "indexpool/model/checkpoint_families.hpp"

namespace indexpool {
namespace {

std::size_t add_layers(const ConfigReader& config, Architecture& architecture) {
  architecture.layers.resize(
      static_cast<std::size_t>(config.size("num_hidden_layers", largest_layers)));
  return architecture.layers.size();
}

AttentionKind qwen_attention(const JsonValue& entry) {
  const std::string type = entry.text();
  if (type == "linear_attention") return AttentionKind::gated_delta;
  if (type == "full_attention") return AttentionKind::grouped_query;
  entry.fail(
      fmt::format("unknown layer type \"{}\", expected linear_attention or full_attention", type));
}

void read_gated_delta(const ConfigReader& config, LinearAttention& linear) {
  linear.key_heads = config.size("linear_num_key_heads");
  linear.value_heads = config.size("linear_num_value_heads");
  linear.key_dim = config.size("linear_key_head_dim");
  linear.value_dim = config.size("linear_value_head_dim");
  linear.conv_kernel = config.size("linear_conv_kernel_dim");
}

bool is_set(const JsonValue& entry) { return whole_number(entry, 0, 1) == 1; }

}  // namespace

void read_qwen4(const ConfigReader& config, Architecture& architecture) {
  const std::size_t layers = add_layers(config, architecture);
  const auto kinds = config.by_layer("layer_types", static_cast<std::int64_t>(layers));
  for (std::size_t i = 0; i < layers; ++i) {
    const AttentionKind kind = qwen_attention(kinds[i]);
    architecture.layers[i] = {kind, MlpKind::moe, kind == AttentionKind::grouped_query, 0};
  }
  architecture.head_dim = config.size("head_dim");
  architecture.attention_output_gate = true;
  read_gated_delta(config, architecture.linear);
  architecture.hc_mult = config.size_or("hc_count", 1);
  architecture.mixture = {config.size("num_experts"), 1, config.size("num_experts_per_tok"),
                          config.size("moe_intermediate_size"),
                          config.size("shared_expert_intermediate_size")};
  IndexerConfig& indexer = architecture.indexer;
  indexer.index_n_heads = config.size("indexer_n_heads");
  indexer.index_head_dim = config.size("indexer_head_dim");
  indexer.index_topk = config.size("indexer_budget");
  indexer.index_kpool = config.size("indexer_compress_ratio");
  indexer.index_kpool_always_select_tail = true;
  architecture.pooling = IndexPooling::mean;
  architecture.index_format = IndexFormat::bf16;
  architecture.kv_format = KvFormat::bf16;
  architecture.numeric_mode = "bf16";
  architecture.parameters_left_out = "n-gram embeddings and hyper-connections of low rank";
}

void read_minimax_m3(const ConfigReader& config, Architecture& architecture) {
  const std::size_t layers = add_layers(config, architecture);
  const auto count = static_cast<std::int64_t>(layers);
  const ConfigReader sparse(config.at("sparse_attention_config"));
  const auto has_indexer = sparse.by_layer("sparse_attention_freq", count);
  const auto has_experts = config.by_layer("moe_layer_freq", count);
  for (std::size_t i = 0; i < layers; ++i) {
    architecture.layers[i] = {AttentionKind::grouped_query,
                              is_set(has_experts[i]) ? MlpKind::moe : MlpKind::dense,
                              is_set(has_indexer[i]), 0};
  }
  architecture.head_dim = config.size("head_dim");
  architecture.dense_intermediate = config.size("dense_intermediate_size");
  architecture.mixture = {config.size("num_local_experts"),
                          config.size_or("n_shared_experts", 0, 0),
                          config.size("num_experts_per_tok"), config.size("intermediate_size"),
                          config.size("shared_intermediate_size")};
  IndexerConfig& indexer = architecture.indexer;
  indexer.index_n_heads = sparse.size("sparse_num_index_heads");
  indexer.index_head_dim = sparse.size("sparse_index_dim");
  indexer.index_topk = sparse.size("sparse_topk_blocks") * sparse.size("sparse_block_size");
  indexer.index_kpool = 1;
  indexer.index_kpool_always_select_tail = false;
  architecture.pooling = IndexPooling::block_scores;
  architecture.index_format = IndexFormat::bf16;
  architecture.kv_format = KvFormat::bf16;
  architecture.numeric_mode = "bf16";
}

}  // namespace indexpool
