#include <algorithm>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify {

QueryOutput run_quantize_query(StageContext& context, const IndexerInputs& inputs) {
  const std::int64_t vectors = inputs.rows() * inputs.config.index_n_heads;
  const TargetBuffer queries = upload(context.target, "queries", inputs.queries);
  const TargetBuffer codes(context.target, "query codes", vectors * inputs.config.index_head_dim);
  const TargetBuffer scales(context.target, "query scales", vectors * 4);
  kernels::QuantizeQueryArgs args;
  args.shape = {inputs.config, inputs.mode};
  args.queries = queries.data();
  args.rows = inputs.rows();
  args.codes = codes.as<std::uint8_t>();
  args.scales = scales.as<float>();
  QueryOutput output;
  if (vectors > 0) launch(context, args, output.run);
  output.codes = codes.download();
  output.scales = values_of<float>(scales.download());
  output.guards = context.target.check_guards();
  return output;
}

LogitsOutput run_logits(StageContext& context, const LogitsInputs& logits) {
  const IndexerInputs& inputs = logits.inputs;
  const auto rows = query_rows(inputs);
  const auto tiles =
      context.planner.query_tiles(rows, inputs.config.index_kpool, kernels::query_rows_per_tile);
  kernels::Target& target = context.target;
  const TargetBuffer queries = upload(target, "queries", logits.queries);
  const TargetBuffer query_scales = upload(target, "query scales", logits.query_scales);
  const TargetBuffer head_weights = upload(target, "head weights", inputs.head_weights);
  const TargetBuffer row_buffer = upload(target, "query rows", rows);
  const TargetBuffer tile_buffer = upload(target, "query tiles", tiles);
  const TargetBuffer cache = upload(target, "cache pages", logits.cache);
  const TargetBuffer table = upload(target, "block table", logits.layout.block_table);
  const TargetBuffer result(target, "logits", inputs.rows() * logits.stride * 4);
  kernels::LogitsArgs args;
  args.shape = {inputs.config, inputs.mode};
  args.queries = queries.data();
  args.query_scales = logits.query_scales.empty() ? nullptr : query_scales.as<float>();
  args.head_weights = head_weights.as<float>();
  args.logit_scale = static_cast<float>(inputs.logit_scale);
  args.rows = row_buffer.as<kernels::QueryRow>();
  args.tiles = tile_buffer.as<kernels::QueryTile>();
  args.row_count = static_cast<std::int64_t>(rows.size());
  args.tile_count = static_cast<std::int64_t>(tiles.size());
  for (const auto& tile : tiles) args.max_pools = std::max(args.max_pools, tile.pools);
  args.cache = {cache.data(), logits.layout.page_stride,
                static_cast<std::int32_t>(logits.layout.states_per_page)};
  args.block_table = table.as<std::int32_t>();
  args.block_table_width = logits.layout.table_width;
  args.logits = result.as<float>();
  args.logits_stride = logits.stride;
  args.host_tiles = tiles.data();
  args.host_rows = rows.data();
  LogitsOutput output;
  if (args.max_pools > 0) launch(context, args, output.run);
  output.logits = values_of<float>(result.download());
  output.guards = target.check_guards();
  return output;
}

TopkOutput run_topk(StageContext& context, const TopkInputs& topk) {
  const IndexerInputs& inputs = topk.inputs;
  const auto rows = query_rows(inputs);
  const TargetBuffer logits = upload(context.target, "logits", topk.logits);
  const TargetBuffer row_buffer = upload(context.target, "query rows", rows);
  // Not -1, which means "unused": an entry that is not written must not look like one.
  constexpr std::byte unwritten{0x7f};
  const TargetBuffer selection(context.target, "selection",
                               inputs.rows() * inputs.config.selection_width() * 4, unwritten);
  kernels::TopkArgs args;
  args.shape = {inputs.config, inputs.mode};
  args.logits = logits.as<float>();
  args.logits_stride = topk.stride;
  args.rows = row_buffer.as<kernels::QueryRow>();
  args.row_count = inputs.rows();
  args.selection = selection.as<std::int32_t>();
  args.host_rows = rows.data();
  TopkOutput output;
  if (args.row_count > 0) launch(context, args, output.run);
  output.selection = values_of<std::int32_t>(selection.download());
  output.guards = context.target.check_guards();
  return output;
}

}  // namespace indexpool::verify
