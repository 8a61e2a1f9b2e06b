// Layers with keys and values, compressed history, or a published pooled form.
#include <algorithm>

#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// A published form keeps projections of latents; what it stores is read as keys and values.
void plan_pooled_form(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  for (const char* name : {"q_a_proj", "kv_a_proj_with_mqa", "q_b_proj", "kv_b_proj"}) {
    p.add(name, tensors.product(tensors.take(name)));
  }
  const PooledForm& form = p.a.form;
  p.add("norms, pooling, cache store",
        norm_and_store(form.heads * form.vectors * form.dim, kv_entry_bytes(p.a, layer, p.kv()),
                       tensors.take_bytes({"q_a_layernorm", "kv_a_layernorm"})));
  Attention attention;
  attention.heads = heads_here(p);
  attention.key_heads = std::max<std::int64_t>(1, form.heads / p.ranks());
  attention.key_dim = form.dim;
  attention.value_dim = form.kept > 0 ? form.kept : form.dim;
  plan_cache(p, layer, attention);
  p.add("o_proj", tensors.product(tensors.take("o_proj")));
  p.all_reduce(p.a.hidden_size);
}

void plan_grouped(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  const Architecture& a = p.a;
  MatrixProduct qkv = tensors.product(tensors.take("q_proj"));
  const ParameterTensor kv = tensors.take("k_proj, v_proj");
  qkv.n += tensors.rows(kv);
  qkv.parameters += tensors.bytes(kv);
  const std::int64_t key_heads =
      std::max<std::int64_t>(1, divided_up(a.num_key_value_heads, p.ranks()));
  p.begin_section();
  p.add("q_proj, k_proj, v_proj", qkv);
  p.add("norms, rope, cache store",
        norm_and_store(qkv.n, kv_entry_bytes(a, layer, p.kv()) / a.num_key_value_heads * key_heads,
                       tensors.take_bytes({"q_norm, k_norm"})));
  if (layer.indexer) {
    p.side("indexer");
    p.add("index_q_proj, index_k_proj",
          tensors.product(tensors.take("index_q_proj, index_k_proj")));
    const std::int64_t width = (a.indexer.index_n_heads + 1) * a.indexer.index_head_dim;
    p.add("index norms, rope",
          Stream{width * bf16_bytes, width * bf16_bytes,
                 tensors.take_bytes({"index_q_norm, index_k_norm"}), 0, 8 * width, 1});
    plan_indexer_kernels(p);
  }
  p.end_section("attention");
  Attention attention;
  attention.heads = heads_here(p);
  attention.key_heads = key_heads;
  attention.key_dim = attention.value_dim = a.head_dim;
  plan_cache(p, layer, attention);
  if (a.attention_output_gate) {
    const std::int64_t width = attention.heads * a.head_dim;
    p.add("output gate", Stream{2 * width * bf16_bytes, width * bf16_bytes, {}, 0, 4 * width, 1});
  }
  p.add("o_proj", tensors.product(tensors.take("o_proj")));
  p.all_reduce(a.hidden_size);
}

// A series of keys and gates that closes an entry every compress_ratio tokens.
void add_compressor(Planner& p, Tensors& tensors) {
  const ParameterTensor projections = tensors.take("compressor.wkv, wgate");
  p.add("compressor.wkv, wgate", tensors.product(projections));
  const std::int64_t width = tensors.rows(projections);
  p.add("compressor, cache store",
        Stream{2 * width * bf16_bytes, width * f32_bytes,
               tensors.take_bytes({"compressor.norm", "compressor.ape"}), 0, 8 * width, 1});
}

void plan_compressed(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  const Architecture& a = p.a;
  MatrixProduct down = tensors.product(tensors.take("wq_a"));
  const ParameterTensor wkv = tensors.take("wkv");
  down.n += tensors.rows(wkv);
  down.parameters += tensors.bytes(wkv);
  p.add("wq_a, wkv", down);
  p.add("norms, rope, cache store", norm_and_store(down.n, kv_entry_bytes(a, layer, p.kv()),
                                                   tensors.take_bytes({"q_norm", "kv_norm"})));
  p.begin_section();
  p.add("wq_b", tensors.product(tensors.take("wq_b")));
  if (layer.compress_ratio > 0) add_compressor(p, tensors);
  if (layer.indexer) {
    p.side("indexer");
    p.add("indexer.wq_b", tensors.product(tensors.take("indexer.wq_b")));
    p.add("indexer.weights_proj", tensors.product(tensors.take("indexer.weights_proj")));
    add_compressor(p, tensors);
    plan_indexer_kernels(p);
  }
  p.end_section("attention");
  Attention attention;
  attention.heads = heads_here(p);
  attention.key_dim = attention.value_dim = a.head_dim;
  attention.parameters = tensors.take_bytes({"attn_sink"});
  plan_cache(p, layer, attention);
  const ParameterTensor grouped = tensors.take("wo_a");
  const std::int64_t groups = std::max<std::int64_t>(1, a.o_groups / p.ranks());
  p.add("wo_a, in groups", MatrixProduct{tensors.rows(grouped) / groups, tensors.columns(grouped),
                                         groups, grouped.format, tensors.bytes(grouped)});
  p.add("wo_b", tensors.product(tensors.take("wo_b")));
  p.all_reduce(a.hidden_size);
}

}  // namespace

void plan_attention(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  p.group = "attention";
  switch (layer.attention) {
    case AttentionKind::latent:
      return plan_latent(p, tensors, layer);
    case AttentionKind::pooled_form:
      return plan_pooled_form(p, tensors, layer);
    case AttentionKind::grouped_query:
      return plan_grouped(p, tensors, layer);
    case AttentionKind::window:
    case AttentionKind::compressed:
      return plan_compressed(p, tensors, layer);
    case AttentionKind::kda:
    case AttentionKind::gated_delta:
      return plan_linear(p, tensors, layer);
  }
}

}  // namespace indexpool::step
