// Bugs of work buffers: sizes, budgets and what stays reserved, with the numbers of their reports.
#include <string>

#include "indexpool/model/memory/plan.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/field/plan_checks.hpp"
#include "indexpool/verify/field/scenario.hpp"

namespace indexpool::verify {
namespace {

constexpr std::int64_t kpool = 4, f32_bytes = 4, million_tokens = std::int64_t{1} << 20;
constexpr Bytes pooled_state{132};  // 128 codes and a scale

// Logits of rows x columns: in one piece, or cut to the budget.
std::vector<Check> cut_logits(FieldSide side, std::int64_t rows, std::int64_t columns,
                              Bytes budget) {
  std::vector<serving::RowChunk> chunks{{0, rows}};
  if (side == FieldSide::ours) chunks = serving::chunk_rows(rows, columns, budget);
  std::vector<Allocation> logits;
  for (const serving::RowChunk& chunk : chunks) {
    std::string what = "logits of rows ";
    what += std::to_string(chunk.first) + " to " + std::to_string(chunk.first + chunk.rows - 1);
    what += " x " + std::to_string(columns) + " pools";
    logits.push_back({what, serving::logits_bytes(chunk.rows, columns)});
  }
  return {check_budget(logits, budget), check_coverage(chunks, rows)};
}

std::vector<Check> logits_never_cut(FieldSide side) {
  return cut_logits(side, 16384, 229376, Bytes(std::int64_t{2} << 30));
}
// The columns were bounded (300k are within 400k), rows x columns were not.
std::vector<Check> only_columns_bounded(FieldSide side) {
  return cut_logits(side, 8192, 300000, serving::default_logits_budget);
}
std::vector<Check> pooled_logits_not_budgeted(FieldSide side) {
  return cut_logits(side, 4096, serving::logits_columns(372000 / kpool),
                    serving::default_logits_budget);
}

// 64 rows at 131,072 keys and 64 heads: products of all heads at once, or summed as they come.
std::vector<Check> products_of_all_heads_kept(FieldSide side) {
  constexpr std::int64_t rows = 64, keys = 131072, heads = 64;
  std::vector<Allocation> buffers{{"logits", serving::logits_bytes(rows, keys)}};
  if (side == FieldSide::stand_in) {
    buffers.push_back({"products of 64 rows x 64 heads x 131072 keys",
                       serving::logits_bytes(rows * heads, keys)});
  }
  return {check_budget(buffers, serving::default_logits_budget)};
}

std::vector<Check> every_chunk_another_size(FieldSide side) {
  constexpr std::int64_t tokens = 200000, chunk = 4608;
  const auto width =
      side == FieldSide::stand_in ? serving::LogitsWidth::growing : serving::LogitsWidth::fixed;
  const auto sizes = serving::prompt_logits(tokens, chunk, kpool, width);
  return {check_reserved(serving::simulate_caching_allocator(sizes))};
}

// The memory plan of GLM-5.3-Flash as vLLM lays it out: planned in pools, or as if tokens were not
// pooled, though the kernels pool them.
Bytes planned(const char* term, FieldSide side, std::int64_t tokens, std::int64_t sequences) {
  MemoryRequest request;
  request.tokens = tokens;
  request.sequences = sequences;
  request.pooled = side == FieldSide::ours;
  return bytes_of(model_memory(load_model("glm-5.3-flash"), request), term);
}

std::vector<Check> gather_workspace_in_tokens(FieldSide side) {
  constexpr std::int64_t max_model_len = 1000000, contexts = 40;
  const std::int64_t most = contexts * reference::visible_pools(max_model_len - 1, kpool);
  return {check_footprint("gather workspace",
                          planned("gathered index keys", side, max_model_len, 1),
                          Bytes(most * pooled_state.value))};
}

std::vector<Check> decode_logits_in_tokens(FieldSide side) {
  constexpr std::int64_t sequences = 1024;
  const std::int64_t row = reference::visible_pools(million_tokens - 1, kpool) * f32_bytes;
  return {check_footprint("decode logits",
                          planned("decode logits", side, million_tokens, sequences),
                          Bytes(sequences * row))};
}

// Decode logits in a profile run: a row for every token of a prefill step, or for those that decode
// steps have. The width of the report is kept on both sides.
std::vector<Check> profile_rows_by_prefill(FieldSide side) {
  constexpr std::int64_t batched_tokens = 8192, sequences = 256, drafts = 3;
  const std::int64_t rows =
      side == FieldSide::stand_in ? batched_tokens : serving::decode_rows(sequences, drafts);
  std::int64_t most = 0;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) most += 1 + drafts;
  return {check_footprint("decode logits", serving::logits_bytes(rows, million_tokens),
                          Bytes(most * million_tokens * f32_bytes))};
}

// Pages of 64 slots for every 64 tokens, of which pools fill one in four; or for every 64 pools.
std::vector<Check> index_page_for_every_token_page(FieldSide side) {
  constexpr std::int64_t page = 64;
  const std::int64_t pages = side == FieldSide::stand_in
                                 ? million_tokens / page
                                 : serving::table_columns(million_tokens, kpool, page);
  return {check_footprint(
      "index pages of 1048576 tokens", Bytes(pages * page * pooled_state.value),
      Bytes(reference::visible_pools(million_tokens - 1, kpool) * pooled_state.value))};
}

}  // namespace

std::span<const FieldRow> buffer_scenarios() {
  static constexpr FieldRow rows[] = {
      {"logits_never_cut", logits_never_cut},
      {"only_columns_bounded", only_columns_bounded},
      {"pooled_logits_not_budgeted", pooled_logits_not_budgeted},
      {"products_of_all_heads_kept", products_of_all_heads_kept},
      {"every_chunk_another_size", every_chunk_another_size},
      {"gather_workspace_in_tokens", gather_workspace_in_tokens},
      {"decode_logits_in_tokens", decode_logits_in_tokens},
      {"profile_rows_by_prefill", profile_rows_by_prefill},
      {"index_page_for_every_token_page", index_page_for_every_token_page}};
  return rows;
}

}  // namespace indexpool::verify
