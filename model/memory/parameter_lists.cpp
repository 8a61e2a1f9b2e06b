// Names and shapes as in the checkpoints and in Hugging Face transformers (models/glm5_next,
// models/glm_moe_dsa, models/deepseek_v32, models/deepseek_v4), stored dtypes as the checkpoints
// have them: projections in the checkpoint's format, norms and routers bf16, gates' biases f32.
#include "indexpool/model/memory/parameter_lists.hpp"

namespace indexpool {
namespace {

using Tensors = std::vector<ParameterTensor>;
using enum Sharding;
constexpr ParameterFormat bf16 = ParameterFormat::bf16;
constexpr ParameterFormat f32 = ParameterFormat::f32;

void append(Tensors& all, Tensors more) {
  for (ParameterTensor& tensor : more) all.push_back(std::move(tensor));
}

// Every rank scores all heads: the indexer is replicated.
Tensors latent_indexer(const Architecture& a) {
  const std::int64_t dim = a.indexer.index_head_dim, heads = a.indexer.index_n_heads;
  const ParameterFormat linear = a.indexer_in_linear_format ? a.linear_format : bf16;
  Tensors list = {{"indexer", "indexer.wq_b", heads * dim, a.q_lora_rank, 1, linear},
                  {"indexer", "indexer.wk", dim, a.hidden_size, 1, linear},
                  {"indexer", "indexer.k_norm", 2, dim, 1, bf16},
                  {"indexer", "indexer.weights_proj", heads, a.hidden_size, 1, bf16}};
  if (a.pooling == IndexPooling::kpool) {
    list.push_back({"indexer", "index_kpool_compress_gate", dim, a.hidden_size, 1, bf16});
    list.push_back({"indexer", "index_kpool_compress_ape", a.indexer.index_kpool, dim, 1, f32});
  }
  return list;
}

Tensors latent_attention(const Architecture& a) {
  const std::int64_t heads = a.num_attention_heads, linear_in = a.hidden_size;
  const std::int64_t query = a.qk_nope_head_dim + a.qk_rope_head_dim;
  const ParameterFormat linear = a.linear_format;
  return {{"attention", "q_a_proj", a.q_lora_rank, linear_in, 1, linear},
          {"attention", "q_a_layernorm", 1, a.q_lora_rank},
          {"attention", "q_b_proj", heads * query, a.q_lora_rank, 1, linear, rows},
          {"attention", "kv_a_proj_with_mqa", a.kv_lora_rank + a.qk_rope_head_dim, linear_in, 1,
           linear},
          {"attention", "kv_a_layernorm", 1, a.kv_lora_rank},
          {"attention", "kv_b_proj", heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank, 1,
           linear, rows},
          {"attention", "o_proj", linear_in, heads * a.v_head_dim, 1, linear, columns}};
}

Tensors kda(const Architecture& a) {
  const LinearAttention& l = a.linear;
  const std::int64_t width = l.value_heads * l.value_dim, hidden = a.hidden_size;
  const ParameterFormat linear = a.linear_format;
  const char* group = "linear attention";
  return {{group, "q_proj, k_proj, v_proj", width, hidden, 3, linear, rows},
          {group, "conv1d", 3 * width, l.conv_kernel, 1, bf16, rows},
          {group, "f_a_proj, g_a_proj", l.key_dim, hidden, 2, bf16},
          {group, "f_b_proj, g_b_proj", width, l.key_dim, 2, bf16, rows},
          {group, "dt_bias", width, 1, 1, f32, rows},
          {group, "A_log", l.value_heads, 1, 1, f32, rows},
          {group, "b_proj", l.value_heads, hidden, 1, bf16, rows},
          {group, "o_norm", 1, l.value_dim},
          {group, "o_proj", hidden, width, 1, linear, columns}};
}

Tensors gated_delta(const Architecture& a) {
  const LinearAttention& l = a.linear;
  const std::int64_t keys = l.key_heads * l.key_dim, values = l.value_heads * l.value_dim;
  const ParameterFormat linear = a.linear_format;
  const char* group = "linear attention";
  return {{group, "in_proj_qkvz", 2 * keys + 2 * values, a.hidden_size, 1, linear, rows},
          {group, "in_proj_ba", 2 * l.value_heads, a.hidden_size, 1, bf16, rows},
          {group, "conv1d", 2 * keys + values, l.conv_kernel, 1, bf16, rows},
          {group, "dt_bias, A_log", l.value_heads, 1, 2, f32, rows},
          {group, "norm", 1, l.value_dim},
          {group, "out_proj", a.hidden_size, values, 1, linear, columns}};
}

Tensors grouped_attention(const Architecture& a, bool indexer) {
  const std::int64_t dim = a.head_dim, heads = a.num_attention_heads;
  const std::int64_t query = heads * dim * (a.attention_output_gate ? 2 : 1);
  const ParameterFormat linear = a.linear_format;
  Tensors list = {{"attention", "q_proj", query, a.hidden_size, 1, linear, rows},
                  {"attention", "k_proj, v_proj", a.num_key_value_heads * dim, a.hidden_size, 2,
                   linear, kv_heads, dim},
                  {"attention", "q_norm, k_norm", 1, dim, 2},
                  {"attention", "o_proj", a.hidden_size, heads * dim, 1, linear, columns}};
  if (indexer) {
    const std::int64_t index_dim = a.indexer.index_head_dim;
    list.push_back({"indexer", "index_q_proj, index_k_proj",
                    (a.indexer.index_n_heads + 1) * index_dim, a.hidden_size, 1, bf16});
    list.push_back({"indexer", "index_q_norm, index_k_norm", 1, index_dim, 2});
  }
  return list;
}

// Keys and gates of `series` series, pooled by `ratio` tokens.
Tensors compressor(const char* group, std::int64_t ratio, std::int64_t series, std::int64_t dim,
                   std::int64_t hidden) {
  return {{group, "compressor.wkv, wgate", series * dim, hidden, 2, bf16},
          {group, "compressor.norm", 1, dim},
          {group, "compressor.ape", ratio, series * dim, 1, f32}};
}

Tensors compressed_attention(const Architecture& a, const LayerSpec& layer) {
  const std::int64_t heads = a.num_attention_heads, dim = a.head_dim;
  const ParameterFormat linear = a.linear_format;
  Tensors list = {
      {"attention", "wq_a", a.q_lora_rank, a.hidden_size, 1, linear},
      {"attention", "q_norm", 1, a.q_lora_rank},
      {"attention", "wq_b", heads * dim, a.q_lora_rank, 1, linear, rows},
      {"attention", "wkv", dim, a.hidden_size, 1, linear},
      {"attention", "kv_norm", 1, dim},
      {"attention", "attn_sink", heads, 1, 1, f32, rows},
      {"attention", "wo_a", a.o_groups * a.o_lora_rank, heads * dim / a.o_groups, 1, linear, rows},
      {"attention", "wo_b", a.hidden_size, a.o_groups * a.o_lora_rank, 1, linear, columns}};
  if (layer.compress_ratio == 0) return list;
  const std::int64_t series = layer.indexer ? 2 : 1;  // overlapping windows need two
  append(list, compressor("attention", layer.compress_ratio, series, dim, a.hidden_size));
  if (layer.indexer) {
    const std::int64_t index_dim = a.indexer.index_head_dim, index_heads = a.indexer.index_n_heads;
    list.push_back({"indexer", "indexer.wq_b", index_heads * index_dim, a.q_lora_rank, 1, linear});
    list.push_back({"indexer", "indexer.weights_proj", index_heads, a.hidden_size, 1, bf16});
    append(list, compressor("indexer", layer.compress_ratio, 2, index_dim, a.hidden_size));
  }
  return list;
}

}  // namespace

Tensors attention_parameters(const Architecture& architecture, const LayerSpec& layer) {
  switch (layer.attention) {
    case AttentionKind::latent:
    case AttentionKind::pooled_form: {
      Tensors list = latent_attention(architecture);
      if (layer.indexer) append(list, latent_indexer(architecture));
      return list;
    }
    case AttentionKind::kda:
      return kda(architecture);
    case AttentionKind::gated_delta:
      return gated_delta(architecture);
    case AttentionKind::grouped_query:
      return grouped_attention(architecture, layer.indexer);
    case AttentionKind::window:
    case AttentionKind::compressed:
      return compressed_attention(architecture, layer);
  }
  return {};
}

Tensors dense_parameters(const Architecture& architecture) {
  const std::int64_t hidden = architecture.hidden_size, wide = architecture.dense_intermediate;
  const ParameterFormat linear = architecture.linear_format;
  return {{"dense MLP", "gate_proj, up_proj", wide, hidden, 2, linear, rows},
          {"dense MLP", "down_proj", hidden, wide, 1, linear, columns}};
}

Tensors expert_parameters(const Architecture& architecture, MlpKind kind) {
  const Mixture& m = architecture.mixture;
  const std::int64_t hidden = architecture.hidden_size;
  const ParameterFormat format = architecture.expert_format, linear = architecture.linear_format;
  Tensors list = {
      {"router", "gate", m.routed, hidden, 1, bf16},
      {"routed experts", "experts.gate_proj, up_proj", m.intermediate, hidden, 2 * m.routed, format,
       rows},
      {"routed experts", "experts.down_proj", hidden, m.intermediate, m.routed, format, columns}};
  if (m.shared > 0) {
    list.push_back({"shared experts", "shared_experts.gate_proj, up_proj", m.shared_intermediate,
                    hidden, 2 * m.shared, linear, rows});
    list.push_back({"shared experts", "shared_experts.down_proj", hidden, m.shared_intermediate,
                    m.shared, linear, columns});
  }
  if (kind == MlpKind::hash_moe) {
    list.push_back(
        {"router", "gate.tid2eid", architecture.vocab_size, m.per_token, 1, ParameterFormat::i64});
  } else {
    list.push_back({"router", "e_score_correction_bias", 1, m.routed, 1, f32});
  }
  return list;
}

}  // namespace indexpool
