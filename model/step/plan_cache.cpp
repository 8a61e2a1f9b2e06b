// What a layer reads of its cache, and what ranks that share a context exchange.
#include <algorithm>

#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// Entries that a row may select. A layer without index keys of its own shares a selection, when it
// keeps latents; with keys and values, or compressed once in 128 tokens, it attends to all.
std::int64_t selected_entries(const Planner& p, const LayerSpec& layer) {
  const bool shares =
      layer.attention == AttentionKind::latent && p.a.indexer_layers() > 0 && !layer.indexer;
  if (!layer.indexer && !shares) return 0;
  const IndexerConfig& indexer = p.a.indexer;
  // A compressed entry is itself what a pool of tokens became.
  return layer.compress_ratio > 0 ? indexer.topk_pools() : indexer.selection_width();
}

std::string cache_name(const LayerSpec& layer, bool selected) {
  if (layer.attention == AttentionKind::window) return "attention over the window";
  if (layer.attention == AttentionKind::compressed) {
    return selected ? "sparse attention, and the window"
                    : "attention over all entries, and the "
                      "window";
  }
  return selected ? "sparse attention" : "attention over all entries";
}

// An entry of 8 bits is converted before it is multiplied.
bool is_converted(KvFormat format) { return format != KvFormat::f32 && format != KvFormat::bf16; }

void share_entries(Planner& p, const LayerSpec& layer, Attention& attention) {
  const Architecture& a = p.a;
  const std::int64_t entry = kv_entry_bytes(a, layer, p.kv());
  const std::int64_t heads = layer.attention == AttentionKind::grouped_query ? a.num_key_value_heads
                             : layer.attention == AttentionKind::pooled_form ? a.form.heads
                                                                             : 1;
  attention.entry_bytes = entry / heads * std::max<std::int64_t>(1, divided_up(heads, p.ranks()));
  if (layer.compress_ratio > 0) attention.tokens_per_entry = layer.compress_ratio;
  if (layer.attention == AttentionKind::pooled_form && !a.form.of_one_token) {
    attention.tokens_per_entry = a.form.vectors;
  }
}

}  // namespace

void plan_cache(Planner& p, const LayerSpec& layer, Attention attention) {
  const Architecture& a = p.a;
  share_entries(p, layer, attention);
  attention.selected = selected_entries(p, layer);
  attention.converted = is_converted(p.kv());
  attention.context_ranks = p.serving.request.context_parallel;
  const bool windowed =
      layer.attention == AttentionKind::window || layer.attention == AttentionKind::compressed;
  if (windowed) {
    attention.window = a.sliding_window;
    attention.window_entry_bytes = attention.entry_bytes;
    attention.whole = layer.attention == AttentionKind::compressed;
  }
  p.group = "sparse attention";
  if (attention.selected == 0) p.group = "attention over caches";
  p.add(cache_name(layer, attention.selected > 0), attention);
  if (attention.context_ranks > 1 && attention.whole) {
    p.group = "collectives";
    // Partial outputs with the largest score and sum of each head, f32.
    p.add("all-reduce of partial outputs",
          Collective{CollectiveKind::all_reduce, attention.context_ranks,
                     attention.heads * (attention.value_dim + 2) * f32_bytes});
  }
  p.group = "attention";
}

void plan_indexer_kernels(Planner& p) {
  p.plan.has_indexer = true;
  p.add("indexer kernels", IndexerKernels{});
  const std::int64_t ranks = p.serving.request.context_parallel;
  if (ranks == 1) return;
  constexpr std::int64_t candidate_bytes = 8;  // score and position
  const std::int64_t each = p.a.indexer.topk_pools() * candidate_bytes;
  p.add("all-gather of candidates", Collective{CollectiveKind::all_gather, ranks, each});
  p.add("merge of candidates",
        Stream{ranks * each, p.a.indexer.selection_width() * 4, {}, 0, ranks * each, 1});
}

}  // namespace indexpool::step
