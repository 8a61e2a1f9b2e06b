// A plugin that fuses everything and gives nothing but the selection. With FAULT the last row
// selects pools far ahead of it: an error that only the selection shows.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "naive.hpp"

namespace {

int pipeline(const indexpool_pipeline_args* args) {
  const indexpool_sizes& z = *args->sizes;
  constexpr std::size_t widest = 4;  // bytes of an element
  const auto pools = static_cast<std::size_t>(z.pools), rows = static_cast<std::size_t>(z.rows);
  const auto heads = static_cast<std::size_t>(z.index_n_heads);
  const auto dim = static_cast<std::size_t>(z.index_head_dim);
  std::vector<std::byte> codes(pools * dim * widest), queries(rows * heads * dim * widest);
  std::vector<float> scales(pools), query_scales(rows * heads);
  std::vector<float> logits(rows * static_cast<std::size_t>(args->logits_stride));
  std::int64_t written = 0;
  indexpool_pipeline_args own = *args;
  own.pool_codes = {codes.data(), 0, &written};
  own.pool_scales = {scales.data(), 0, &written};
  own.query_codes = {queries.data(), 0, &written};
  own.query_scales = {query_scales.data(), 0, &written};
  own.logits = {logits.data(), 0, &written};
  const int result = naive::pipeline(&own);
#ifdef FAULT
  auto* last = static_cast<std::int32_t*>(args->selection.data) + (z.rows - 1) * z.selection_width;
  for (int j = 0; j < z.index_kpool; ++j) last[j] += z.index_kpool * 1000;
#endif
  return result;
}

}  // namespace

int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }

const indexpool_plugin* indexpool_plugin_table(void) {
  static indexpool_plugin table{};
  table.pipeline = pipeline;
  return &table;
}
