// What a step works in: tables, logits, gathered keys, the selection, activations.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/stage.hpp"
#include "indexpool/model/serving_plan.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t index_bytes = 4;  // i32 page numbers and positions
constexpr std::int64_t f32_bytes = 4, bf16_bytes = 2;

bool has_indexer(const LayerSpec& layer) { return layer.indexer; }

// Keys that a query of the longest context sees.
std::int64_t index_keys(const Stage& stage) {
  return stage.request().tokens / stage.tokens_per_key();
}

std::int64_t prefill_rows(const Stage& stage) {
  return std::min(stage.request().prefill_chunk,
                  product({stage.request().tokens, stage.request().sequences}, "query rows"));
}

// A launch scores as many rows as fit the budget, one at least (that one may exceed it).
Bytes logits_budget(const Stage& stage) {
  if (stage.request().logits_budget) return *stage.request().logits_budget;
  // SGLang cuts where offsets would leave 31 bits (sgl-project/sglang#37478).
  return stage.request().engine == Engine::vllm ? serving::default_logits_budget
                                                : Bytes((std::int64_t{1} << 31) - 1);
}

// Cut into launches, they fill the budget: if not at this context, then at a shorter one that the
// prompt has passed, where the rows come out even. DeepGEMM adds rows up to a multiple of
// 128 / heads.
void add_prefill_logits(Stage& stage) {
  const std::int64_t heads = stage.architecture().indexer.index_n_heads;
  const std::int64_t keys = index_keys(stage);
  const std::int64_t columns = serving::logits_columns(checked_sum(keys, 256, "columns of logits"));
  const std::int64_t row = serving::logits_bytes(1, columns).value;
  const Bytes budget(std::max(logits_budget(stage).value, row));
  const auto chunks = serving::chunk_rows(prefill_rows(stage), columns, budget);
  const std::int64_t rows = chunks.front().rows;
  MemoryTerm term{
      MemoryKind::workspace,
      "prefill logits",
      serving::deepgemm_prefill_logits_bytes(rows, keys, heads),
      0,
      fmt::format("{} rows x align({} keys + 256, 256) x 4 B", rows, keys),
      fmt::format("DeepGEMM, csrc/apis/attention.hpp; budget of {} B for rows x columns",
                  logits_budget(stage).value)};
  if (chunks.size() > 1) {
    const std::int64_t spare = divided_up(128, heads) - 1;
    term.bytes = Bytes(checked_sum(budget.value, spare * row, "bytes of the logits"));
    term.formula = fmt::format(
        "budget of {} B, cut into {} launches of {} rows, and {} rows of {} B that align them",
        budget.value, chunks.size(), rows, spare, row);
  }
  stage.add(std::move(term), 1);
}

void add_decode_logits(Stage& stage) {
  const MemoryRequest& request = stage.request();
  const std::int64_t rows = serving::decode_rows(request.sequences, request.drafts);
  const std::int64_t columns =
      serving::decode_logits_columns(request.tokens, stage.tokens_per_key());
  stage.add({MemoryKind::workspace, "decode logits", serving::logits_bytes(rows, columns), 0,
             fmt::format("{} rows x {} columns x 4 B", rows, columns),
             "DeepGEMM, csrc/apis/attention.hpp; pools of the longest context "
             "(vllm-project/vllm#57701)"},
            1);
}

// Index keys of a prefill's requests, brought together from their pages.
void add_gather(Stage& stage) {
  const IndexPooling pooling = stage.architecture().pooling;
  const bool gathers = pooling != IndexPooling::mean && pooling != IndexPooling::block_scores;
  if (stage.request().engine != Engine::vllm || !gathers) return;
  const std::int64_t states =
      serving::gather_states(stage.request().tokens, stage.tokens_per_key());
  const Bytes key(index_key_bytes(stage.architecture(), stage.index()));
  stage.add({MemoryKind::workspace, "gathered index keys",
             serving::gather_workspace_bytes(states, key), 0,
             fmt::format("{} keys ({} contexts) x {} B", states, serving::prefill_gather_contexts,
                         key.value),
             "vLLM, get_max_prefill_buffer_size, in pools (vllm-project/vllm#55221)"},
            1);
}

void add_selection(Stage& stage) {
  const std::int64_t rows = std::max(
      prefill_rows(stage), serving::decode_rows(stage.request().sequences, stage.request().drafts));
  const std::int64_t width = stage.architecture().indexer.selection_width();
  const std::int64_t columns =
      stage.request().engine == Engine::vllm ? serving::index_table_columns(width, 128) : width;
  stage.add({MemoryKind::workspace, "selected positions",
             Bytes(product({rows, columns, index_bytes}, "bytes of the selection")), 0,
             fmt::format("{} rows x {} columns x {} B", rows, columns, index_bytes),
             "vLLM: columns up to a multiple of 128 (vllm-project/vllm#55563)"},
            1);
}

void add_head_logits(Stage& stage) {
  if (!stage.last()) return;
  const MemoryRequest& request = stage.request();
  const std::int64_t rows = serving::decode_rows(request.sequences, request.drafts);
  const std::int64_t vocab = stage.architecture().vocab_size;
  stage.add({MemoryKind::workspace, "token logits",
             Bytes(product({rows, vocab, f32_bytes}, "bytes of the token logits")), 0,
             fmt::format("{} rows x {} tokens x 4 B", rows, vocab),
             "gathered from all ranks before sampling, f32"},
            1);
}

// Elements of one token that the widest part of a layer needs besides the residual streams.
std::int64_t widest_part(const Stage& stage, const LayerSpec& layer) {
  const Architecture& a = stage.architecture();
  const std::int64_t ranks = stage.request().tensor_parallel;
  const std::int64_t heads = divided_up(a.num_attention_heads, ranks);
  const LinearAttention& l = a.linear;
  std::int64_t attention = 0;
  switch (layer.attention) {
    case AttentionKind::latent:
    case AttentionKind::pooled_form:
      attention = heads * (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim) + a.q_lora_rank +
                  a.kv_lora_rank + a.qk_rope_head_dim;
      break;
    case AttentionKind::kda:
    case AttentionKind::gated_delta:
      attention = divided_up(2 * l.key_heads * l.key_dim + 3 * l.value_heads * l.value_dim, ranks);
      break;
    default:
      attention = 2 * heads * a.head_dim + 2 * a.num_key_value_heads * a.head_dim;
  }
  if (layer.indexer) attention += (a.indexer.index_n_heads + 2) * a.indexer.index_head_dim;
  const Mixture& m = a.mixture;
  const std::int64_t mlp =
      layer.mlp == MlpKind::dense
          ? 3 * divided_up(a.dense_intermediate, ranks)
          : m.per_token * (3 * divided_up(m.intermediate, ranks) + a.hidden_size);
  return std::max(attention, mlp);
}

void add_activations(Stage& stage) {
  const Architecture& a = stage.architecture();
  const std::int64_t rows = std::max(
      prefill_rows(stage), serving::decode_rows(stage.request().sequences, stage.request().drafts));
  std::int64_t widest = 0;
  for (const LayerGroup& group : stage.groups()) {
    widest = std::max(widest, widest_part(stage, group.layer));
  }
  // Streams before and after a layer, and its normed input.
  const std::int64_t width = (2 * a.hc_mult + 1) * a.hidden_size + widest;
  stage.add(
      {MemoryKind::activation, "activations",
       Bytes(product({rows, width, bf16_bytes}, "bytes of activations")), 0,
       fmt::format("{} rows x ({} residual streams twice, a layer's input, {} elements of its "
                   "widest part) x 2 B",
                   rows, a.hc_mult, widest),
       "what has to be alive at once; engines hold more"},
      1);
}

}  // namespace

void add_tables(Stage& stage) {
  const MemoryRequest& request = stage.request();
  if (request.engine == Engine::packed) return;
  const std::int64_t block = block_tokens(stage);
  if (request.engine == Engine::sglang) {
    stage.add(
        {MemoryKind::table, "token table",
         Bytes(product({request.sequences, checked_sum(request.tokens, 4, "tokens"), index_bytes},
                       "bytes of the token table")),
         0, fmt::format("{} sequences x ({} + 4) tokens x 4 B", request.sequences, request.tokens),
         "SGLang, req_to_token"},
        1);
  }
  const std::int64_t columns = divided_up(request.tokens, block);
  stage.add({MemoryKind::table, "block tables",
             Bytes(product({request.sequences, columns, index_bytes}, "bytes of block tables")), 0,
             fmt::format("{} sequences x {} blocks of {} tokens x 4 B", request.sequences, columns,
                         block),
             "one entry a block of the cache"},
            1);
  if (stage.layers_with(has_indexer) == 0) return;
  const std::int64_t per_key = request.engine == Engine::sglang ? 1 : stage.tokens_per_key();
  const std::int64_t states = divided_up(block, per_key);
  const std::int64_t page =
      states <= 64 || states % 64 == 0 ? std::min<std::int64_t>(states, 64) : std::int64_t{32};
  const std::int64_t pages = product({columns, divided_up(states, page)}, "pages");
  stage.add(
      {MemoryKind::table, "index page table",
       Bytes(product({request.sequences, pages, index_bytes}, "bytes of page tables")), 0,
       fmt::format("{} sequences x {} pages of {} keys x 4 B", request.sequences, pages, page),
       "vLLM, Glm5NextIndexerCache: pages of 64 keys where they tile a block, else of 32"},
      1);
}

void add_workspaces(Stage& stage) {
  if (stage.request().engine == Engine::packed) return;
  if (stage.layers_with(has_indexer) > 0) {
    add_prefill_logits(stage);
    add_decode_logits(stage);
    add_gather(stage);
    add_selection(stage);
  }
  add_head_logits(stage);
  add_activations(stage);
}

}  // namespace indexpool
