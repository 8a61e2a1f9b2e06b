// Caches and states of a stage, in pages where the engine has pages.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/stage.hpp"
#include "indexpool/model/serving_plan.hpp"

namespace indexpool {
namespace {

constexpr const char* vllm_pages = "vLLM, v1/kv_cache_interface.py, models/glm5next";
constexpr const char* sglang_pages = "SGLang, layers/attention/dsa/kpool_fp8_index.py";
constexpr const char* no_pages = "entries without pages";
// A page that a kernel reads in rows of 576 bytes is padded to whole rows (FlashMLA, MODEL1).
constexpr std::int64_t packed_row = 576;

const char* pages_of(const Stage& stage) {
  switch (stage.request().engine) {
    case Engine::vllm:
      return vllm_pages;
    case Engine::sglang:
      return sglang_pages;
    case Engine::packed:
      break;
  }
  return no_pages;
}

bool is_linear(const LayerSpec& layer) {
  return layer.attention == AttentionKind::kda || layer.attention == AttentionKind::gated_delta;
}

bool has_ratio(const LayerSpec& layer) { return layer.compress_ratio > 0; }

bool is_windowed(const LayerSpec& layer) {
  return layer.attention == AttentionKind::window || layer.attention == AttentionKind::compressed;
}

// Keys and values lie with their head; latents and entries of one head lie on every rank.
std::int64_t entry_on_rank(const Stage& stage, const LayerSpec& layer) {
  const Architecture& a = stage.architecture();
  const std::int64_t entry = kv_entry_bytes(a, layer, stage.kv());
  const std::int64_t ranks = stage.request().tensor_parallel;
  const std::int64_t heads = layer.attention == AttentionKind::grouped_query ? a.num_key_value_heads
                             : layer.attention == AttentionKind::pooled_form ? a.form.heads
                                                                             : 1;
  return entry / heads * std::max<std::int64_t>(1, divided_up(heads, ranks));
}

std::int64_t tokens_per_entry(const Stage& stage, const LayerSpec& layer) {
  if (has_ratio(layer)) return layer.compress_ratio;
  const PooledForm& form = stage.architecture().form;
  return layer.attention == AttentionKind::pooled_form && !form.of_one_token ? form.vectors : 1;
}

// Blocks of a sequence on the rank that has most of them.
std::int64_t blocks_on_rank(const Stage& stage) {
  const std::int64_t blocks = divided_up(stage.request().tokens, block_tokens(stage));
  return divided_up(blocks, stage.request().context_parallel);
}

// Entries of a sequence on a rank: whole blocks with pages, else whole entries.
struct Run {
  std::int64_t pieces = 0, piece_bytes = 0;
  std::string unit;  // "pages"
};
Run run_of(const Stage& stage, std::int64_t tokens_per, std::int64_t entry, bool padded_rows) {
  const MemoryRequest& request = stage.request();
  if (request.engine == Engine::packed) {
    return {divided_up(request.tokens / tokens_per, request.context_parallel), entry, "entries"};
  }
  const std::int64_t entries = divided_up(block_tokens(stage), tokens_per);
  std::int64_t page = product({entries, entry}, "bytes of a page");
  if (padded_rows) page = divided_up(page, packed_row) * packed_row;
  return {blocks_on_rank(stage), page, "blocks"};
}

void add_run(Stage& stage, const char* name, const Run& run, std::int64_t layers) {
  const std::int64_t sequences = stage.request().sequences;
  // SGLang keeps a page that belongs to no request, for padded batches.
  const bool spare = stage.request().engine == Engine::sglang;
  const std::int64_t pieces =
      checked_sum(product({sequences, run.pieces}, "pages"), spare ? 1 : 0, "pages");
  stage.add({MemoryKind::cache, name,
             Bytes(product({layers, pieces, run.piece_bytes}, "bytes of a cache")), layers,
             fmt::format("{} layers x {}{} {} x {} B", layers, pieces,
                         sequences > 1 ? fmt::format(" ({} sequences)", sequences) : "", run.unit,
                         run.piece_bytes),
             pages_of(stage)},
            layers);
}

const char* cache_name(const LayerSpec& layer) {
  switch (layer.attention) {
    case AttentionKind::latent:
      return "latents";
    case AttentionKind::grouped_query:
      return "keys and values";
    case AttentionKind::compressed:
      return "compressed entries";
    default:
      return "pooled cache";
  }
}

void add_entries(Stage& stage, const LayerGroup& group) {
  const LayerSpec& layer = group.layer;
  if (is_linear(layer) || layer.attention == AttentionKind::window) return;
  const Run run = run_of(stage, tokens_per_entry(stage, layer), entry_on_rank(stage, layer),
                         stage.kv() == KvFormat::v4_packed);
  add_run(stage, cache_name(layer), run, group.count);
}

// SGLang allocates by token page: pooled keys fill one page of every index_kpool (sglang#39156).
void add_index_keys(Stage& stage, std::int64_t layers) {
  if (layers == 0) return;
  const std::int64_t key = index_key_bytes(stage.architecture(), stage.index());
  const std::int64_t tokens = stage.request().engine == Engine::sglang ? 1 : stage.tokens_per_key();
  add_run(stage, "index keys", run_of(stage, tokens, key, false), layers);
}

void add_windows(Stage& stage, std::int64_t layers) {
  if (layers == 0) return;
  const Architecture& a = stage.architecture();
  const LayerSpec layer{AttentionKind::window, MlpKind::moe, false, 0};
  const std::int64_t entry = kv_entry_bytes(a, layer, stage.kv());
  std::int64_t pieces = a.sliding_window, bytes = entry;
  if (stage.request().engine != Engine::packed) {
    // One more page than the window fills: it slides by tokens.
    constexpr std::int64_t page = 64;
    pieces = divided_up(a.sliding_window, page) + 1;
    bytes = page * entry;
    if (stage.kv() == KvFormat::v4_packed) bytes = divided_up(bytes, packed_row) * packed_row;
  }
  const std::int64_t sequences = stage.request().sequences;
  stage.add({MemoryKind::cache, "sliding windows",
             Bytes(product({sequences, layers, pieces, bytes}, "bytes of windows")), layers,
             fmt::format("{} sequences x {} layers x {} x {} B", sequences, layers, pieces, bytes),
             pages_of(stage)},
            layers);
}

// Keys and gates of the tokens whose entry is still open, f32: twice the ratio of two series where
// windows overlap, else the ratio of one.
void add_compressor_states(Stage& stage) {
  const Architecture& a = stage.architecture();
  const std::int64_t sequences = stage.request().sequences;
  for (const LayerGroup& group : stage.cache_groups()) {
    const std::int64_t ratio = group.layer.compress_ratio;
    if (ratio == 0) continue;
    const std::int64_t fold = group.layer.indexer ? 2 : 1;
    const std::int64_t width =
        fold * (a.head_dim + (group.layer.indexer ? a.indexer.index_head_dim : 0));
    const std::int64_t bytes = product({fold * ratio, width, 2, 4}, "bytes of compressor states");
    stage.add(
        {MemoryKind::state, "compressor states",
         Bytes(product({sequences, group.count, bytes}, "bytes of compressor states")), group.count,
         fmt::format("{} sequences x {} layers x {} tokens x {} x 2 (keys, gates) x 4 B", sequences,
                     group.count, fold * ratio, width),
         "transformers, models/deepseek_v4; shapes as in ROCm/ATOM#664"},
        group.count);
  }
}

// Keys (and gate scores) of the pool that is still open. In vLLM a ring takes a block of the index
// keys' size (vllm-project/vllm#57477).
void add_tails(Stage& stage, std::int64_t layers) {
  const Architecture& a = stage.architecture();
  const bool pools = a.pooling == IndexPooling::kpool || a.pooling == IndexPooling::mean;
  if (!pools || layers == 0 || stage.tokens_per_key() == 1) return;
  const MemoryRequest& request = stage.request();
  const bool exact = request.engine == Engine::sglang;
  const std::int64_t ring = exact ? a.indexer.index_kpool + request.drafts
                                  : serving::tail_ring(a.indexer.index_kpool, request.drafts);
  std::int64_t bytes = serving::tail_block_bytes(ring, a.indexer.index_head_dim, 2).value;
  if (a.pooling == IndexPooling::mean) bytes /= 2;  // no gate scores
  const std::int64_t filled = bytes;
  if (request.engine == Engine::vllm) {
    const std::int64_t page =
        product({block_tokens(stage) / stage.tokens_per_key(), index_key_bytes(a, stage.index())},
                "bytes of a page");
    bytes = divided_up(bytes, page) * page;
  }
  stage.add({MemoryKind::state, "tails",
             Bytes(product({request.sequences, layers, bytes}, "bytes of the tails")), layers,
             fmt::format("{} sequences x {} layers x {} B ({} B filled: {} tokens)",
                         request.sequences, layers, bytes, filled, ring),
             pages_of(stage)},
            layers);
}

void add_linear_states(Stage& stage, const LayerGroup& group) {
  if (!is_linear(group.layer)) return;
  const MemoryRequest& request = stage.request();
  const std::int64_t state = linear_state_bytes(stage, group.layer).value;
  std::int64_t bytes = state;
  if (request.engine == Engine::vllm) {
    // Its page is as large as the latents' (or keys') of a block.
    for (const LayerGroup& other : stage.cache_groups()) {
      if (is_linear(other.layer)) continue;
      bytes = std::max(bytes, product({block_tokens(stage), entry_on_rank(stage, other.layer)},
                                      "bytes of a page"));
    }
  }
  const auto add = [&](const char* name, std::int64_t count, const char* unit) {
    stage.add({MemoryKind::state, name,
               Bytes(product({request.sequences, group.count, count, bytes}, "bytes of states")),
               group.count,
               fmt::format("{} sequences x {} layers x {} {} x {} B ({} B filled)",
                           request.sequences, group.count, count, unit, bytes, state),
               "state f32, last tokens of the convolution bf16 (transformers, models/glm5_next)"},
              group.count);
  };
  add("recurrent states", 1, "state");
  if (request.prefix_cache) {
    const std::int64_t block =
        request.engine == Engine::packed ? std::int64_t{64} : block_tokens(stage);
    add("state snapshots", request.tokens / block, "blocks");
  }
}

}  // namespace

Bytes linear_state_bytes(const Stage& stage, const LayerSpec& layer) {
  if (!is_linear(layer)) return {};
  const LinearAttention& l = stage.architecture().linear;
  const std::int64_t recurrent =
      product({l.value_heads, l.key_dim, l.value_dim, 4}, "bytes of a recurrent state");
  const std::int64_t channels = 2 * l.key_heads * l.key_dim + l.value_heads * l.value_dim;
  // A rejected draft is undone by the tokens before it.
  const std::int64_t taps = l.conv_kernel - 1 + stage.request().drafts;
  const std::int64_t conv = product({channels, taps, 2}, "bytes of a convolution state");
  return Bytes(divided_up(recurrent + conv, stage.request().tensor_parallel));
}

std::int64_t hybrid_block_tokens(Bytes state, std::int64_t token_entry_bytes, std::int64_t align) {
  return align * divided_up(state.value, product({align, token_entry_bytes}, "bytes of a page"));
}

std::int64_t block_tokens(const Stage& stage) {
  const Architecture& a = stage.architecture();
  switch (stage.request().engine) {
    case Engine::packed:
      return 1;
    case Engine::sglang:
      return a.sliding_window > 0 ? 256 : 64;
    case Engine::vllm:
      break;
  }
  if (a.sliding_window > 0) return 256;  // 64 entries of ratio 4 (vllm, deepseek_v4)
  const auto with_state = std::find_if(a.layers.begin(), a.layers.end(), is_linear);
  const auto with_entry = std::find_if_not(a.layers.begin(), a.layers.end(), is_linear);
  // Index pages hold 32 states at least (deepseek-ai/DeepGEMM#314).
  constexpr std::int64_t latent_align = 128, plain_block = 64;
  if (with_state == a.layers.end() || with_entry == a.layers.end()) {
    return std::max(plain_block, 32 * stage.tokens_per_key());
  }
  return hybrid_block_tokens(linear_state_bytes(stage, *with_state),
                             std::max<std::int64_t>(1, entry_on_rank(stage, *with_entry)),
                             std::max(latent_align, 32 * stage.tokens_per_key()));
}

void add_caches(Stage& stage) {
  const std::int64_t indexed =
      stage.layers_with([](const LayerSpec& layer) { return layer.indexer; });
  for (const LayerGroup& group : stage.cache_groups()) add_entries(stage, group);
  add_index_keys(stage, indexed);
  add_windows(stage, stage.layers_with(is_windowed));
  add_compressor_states(stage);
  add_tails(stage, indexed);
  for (const LayerGroup& group : stage.cache_groups()) add_linear_states(stage, group);
}

}  // namespace indexpool
