// Memory to the byte: pools, pages, rings and workspaces of the indexer.
#include <initializer_list>

#include <fmt/format.h>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/serving_plan_pages.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t scale_bytes = 4;  // f32, one per state of a quantised cache
constexpr std::int64_t index_bytes = 4;  // i32 page numbers and selected positions
constexpr std::int64_t logit_bytes = 4;  // f32

// One state: the key's elements or codes, and its scale.
std::int64_t state_bytes(const ArchitectureConfig& architecture) {
  const NumericMode& mode = numeric_mode(architecture.numeric_mode);
  return checked_sum(checked_product(architecture.indexer.index_head_dim, info(mode.cache).bytes,
                                     "bytes of a cached key"),
                     mode.quantised() ? scale_bytes : 0, "bytes of a cached state");
}

std::int64_t pools_of(const ArchitectureConfig& architecture, std::int64_t tokens) {
  if (tokens < 0) throw ConfigError(fmt::format("found {} tokens, expected at least 0", tokens));
  return tokens / architecture.indexer.index_kpool;
}

std::int64_t pages_of(const ArchitectureConfig& architecture, std::int64_t tokens) {
  const std::int64_t pools = pools_of(architecture, tokens);
  return pools / architecture.states_per_page + (pools % architecture.states_per_page > 0 ? 1 : 0);
}

std::int64_t product(std::initializer_list<std::int64_t> factors, const char* what) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result = checked_product(result, factor, what);
  return result;
}

MemoryItem pools_item(const ArchitectureConfig& architecture, const ContextSize& context) {
  const std::int64_t pages = pages_of(architecture, context.tokens);
  const std::int64_t page_bytes =
      product({architecture.states_per_page, state_bytes(architecture)}, "bytes of a page");
  return {"pools",
          Bytes(product({context.sequences, architecture.indexer_layers, pages, page_bytes},
                        "bytes of the paged cache")),
          fmt::format("{} sequences x {} layers x {} pages x {} B", context.sequences,
                      architecture.indexer_layers, pages, page_bytes)};
}

MemoryItem ring_item(const ArchitectureConfig& architecture, const ContextSize& context) {
  const std::int64_t ring = serving::tail_ring(architecture.indexer.index_kpool, context.drafts);
  const std::int64_t element = info(numeric_mode(architecture.numeric_mode).storage).bytes;
  const std::int64_t dim = architecture.indexer.index_head_dim;
  return {"tail ring",
          Bytes(product({context.sequences, architecture.indexer_layers, 2, ring, dim, element},
                        "bytes of the tail rings")),
          fmt::format("{} sequences x {} layers x 2 (keys, gate scores) x {} tokens x {} x {} B",
                      context.sequences, architecture.indexer_layers, ring, dim, element)};
}

MemoryItem block_table_item(const ArchitectureConfig& architecture, const ContextSize& context) {
  const std::int64_t pages = pages_of(architecture, context.tokens);
  return {"block table",
          Bytes(product({context.sequences, pages, index_bytes}, "bytes of the block table")),
          fmt::format("{} sequences x {} pages x {} B", context.sequences, pages, index_bytes)};
}

std::int64_t rows_at_once(const ContextSize& context) {
  if (context.query_rows > 0) return context.query_rows;
  return checked_product(context.sequences, context.drafts + 1, "query rows");
}

}  // namespace

Bytes indexer_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens) {
  return Bytes(product(
      {architecture.indexer_layers, pools_of(architecture, tokens), state_bytes(architecture)},
      "bytes of the pooled cache"));
}

Bytes unpooled_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens) {
  if (tokens < 0) throw ConfigError(fmt::format("found {} tokens, expected at least 0", tokens));
  return Bytes(product({architecture.indexer_layers, tokens, state_bytes(architecture)},
                       "bytes of the unpooled cache"));
}

Bytes paged_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens) {
  return pools_item(architecture, {tokens, 1, 0, 0}).bytes;
}

MemoryPlan resident_memory(const ArchitectureConfig& architecture, const ContextSize& context) {
  if (context.sequences < 1 || context.drafts < 0 || context.query_rows < 0) {
    throw ConfigError(
        fmt::format("found {} sequences, {} drafts and {} query rows; expected at least 1, 0 and 0",
                    context.sequences, context.drafts, context.query_rows));
  }
  const std::int64_t rows = rows_at_once(context);
  const std::int64_t pools = pools_of(architecture, context.tokens);
  const std::int64_t width = architecture.indexer.selection_width();
  MemoryPlan plan;
  plan.items = {pools_item(architecture, context),
                ring_item(architecture, context),
                block_table_item(architecture, context),
                {"logits", Bytes(product({rows, pools, logit_bytes}, "bytes of the logits")),
                 fmt::format("{} rows x {} pools x {} B", rows, pools, logit_bytes)},
                {"selection", Bytes(product({rows, width, index_bytes}, "bytes of the selection")),
                 fmt::format("{} rows x {} positions x {} B", rows, width, index_bytes)}};
  for (const MemoryItem& item : plan.items) {
    plan.total = Bytes(checked_sum(plan.total.value, item.bytes.value, "bytes of the indexer"));
  }
  return plan;
}

}  // namespace indexpool
