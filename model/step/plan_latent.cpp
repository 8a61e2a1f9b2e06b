// Layers that keep latents, and their indexer.
#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

constexpr const char* latent_source = "vLLM, MLACommonImpl: absorbed projections";

// What the indexer multiplies and norms before its own kernels run.
void plan_latent_indexer(Planner& p, Tensors& tensors) {
  p.side("indexer");
  p.add("indexer.wq_b", tensors.product(tensors.take("indexer.wq_b")));
  p.add("indexer.wk", tensors.product(tensors.take("indexer.wk")));
  p.add("indexer.weights_proj", tensors.product(tensors.take("indexer.weights_proj")));
  if (tensors.has("index_kpool_compress_gate")) {
    p.add("index_kpool_compress_gate", tensors.product(tensors.take("index_kpool_compress_gate")));
  }
  const std::int64_t width = p.a.indexer.index_head_dim;
  p.add("k_norm, rope", Stream{width * bf16_bytes, width * bf16_bytes,
                               tensors.take_bytes({"indexer.k_norm", "index_kpool_compress_ape"}),
                               0, 8 * width, 1});
  plan_indexer_kernels(p);
}

// kv_b_proj in two halves, one product a head each: kept in bf16 beside the checkpoint's by
// engines.
void add_absorbed(Planner& p, Tensors& tensors, const ParameterTensor& both, bool values) {
  const std::int64_t inner = values ? p.a.v_head_dim : p.a.qk_nope_head_dim;
  const std::int64_t outer = p.a.qk_nope_head_dim + p.a.v_head_dim;
  MatrixProduct product;
  product.copies = heads_here(p);
  product.n = values ? p.a.v_head_dim : p.a.kv_lora_rank;
  product.k = values ? p.a.kv_lora_rank : p.a.qk_nope_head_dim;
  if (p.serving.request.engine == Engine::packed) {
    const Bytes stored = tensors.bytes(both);
    product.format = both.format;
    const Bytes keys(stored.value / outer * p.a.qk_nope_head_dim);
    product.parameters = values ? stored - keys : keys;
  } else {
    product.parameters = Bytes(product.copies * inner * p.a.kv_lora_rank * bf16_bytes);
  }
  p.add(values ? "absorbed value half of kv_b_proj" : "absorbed key half of kv_b_proj", product,
        latent_source);
}

}  // namespace

void plan_latent(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  const Architecture& a = p.a;
  const ParameterTensor q_a = tensors.take("q_a_proj");
  const ParameterTensor kv_a = tensors.take("kv_a_proj_with_mqa");
  const ParameterTensor kv_b = tensors.take("kv_b_proj");
  MatrixProduct down = tensors.product(q_a);
  down.n += tensors.rows(kv_a);
  down.parameters += tensors.bytes(kv_a);
  p.add("q_a_proj, kv_a_proj_with_mqa", down);
  const std::int64_t entry = kv_entry_bytes(a, layer, p.kv());
  p.add("norms, rope, cache store",
        norm_and_store(tensors.rows(q_a) + tensors.rows(kv_a), entry,
                       tensors.take_bytes({"q_a_layernorm", "kv_a_layernorm"})));
  p.begin_section();
  p.add("q_b_proj", tensors.product(tensors.take("q_b_proj")));
  add_absorbed(p, tensors, kv_b, false);
  if (layer.indexer) plan_latent_indexer(p, tensors);
  p.end_section("attention");
  Attention attention;
  attention.heads = heads_here(p);
  attention.key_dim = a.kv_lora_rank + a.qk_rope_head_dim;
  attention.value_dim = a.kv_lora_rank;
  plan_cache(p, layer, attention);
  add_absorbed(p, tensors, kv_b, true);
  p.add("o_proj", tensors.product(tensors.take("o_proj")));
  p.all_reduce(a.hidden_size);
}

}  // namespace indexpool::step
