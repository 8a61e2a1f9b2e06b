// Sampled rows of logits at sampled pools.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/measure/sample.hpp"
#include "indexpool/verify/stored.hpp"

namespace indexpool::verify::timing {
namespace {

constexpr std::int64_t pools_per_row = 16;

// One row and some pools of its sequence, as real numbers.
struct RowOperands {
  std::vector<double> queries, query_scales, head_weights, pools, pool_scales;
};

std::vector<double> as_doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void read_pool(kernels::Target& target, const Placed& placed, const kernels::LogitsArgs& args,
               std::int64_t request, std::int64_t pool, RowOperands& operands) {
  const std::int64_t states = args.cache.states_per_page;
  const kernels::PageLayout layout = kernels::page_layout(args.shape, states);
  const std::int64_t page =
      placed.host
          .block_table[static_cast<std::size_t>(request * placed.host.table_width + pool / states)];
  const std::byte* const at = args.cache.pages + page * args.cache.page_stride;
  const auto codes =
      downloaded(target, at + pool % states * layout.code_bytes(), layout.code_bytes());
  for (const double code : decode(args.shape.mode.cache, codes)) operands.pools.push_back(code);
  if (!layout.scales) return;
  const auto* const scales = reinterpret_cast<const float*>(at + layout.scale_offset());
  operands.pool_scales.push_back(downloaded(target, scales + pool % states, 1)[0]);
}

RowOperands read_row(kernels::Target& target, const Placed& placed, const kernels::LogitsArgs& args,
                     std::int64_t row, const std::vector<std::int64_t>& pools) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t heads = config.index_n_heads;
  const DType dtype = operand_dtype(args.shape.mode);
  const std::int64_t row_bytes = heads * config.index_head_dim * info(dtype).bytes;
  RowOperands operands;
  operands.queries = decode(
      dtype,
      downloaded(target, static_cast<const std::byte*>(args.queries) + row * row_bytes, row_bytes));
  if (args.query_scales != nullptr) {
    operands.query_scales = as_doubles(downloaded(target, args.query_scales + row * heads, heads));
  }
  operands.head_weights = as_doubles(downloaded(target, args.head_weights + row * heads, heads));
  const std::int64_t request = placed.host.rows[static_cast<std::size_t>(row)].request;
  for (const std::int64_t pool : pools) read_pool(target, placed, args, request, pool, operands);
  return operands;
}

reference::Bounded expected_logits(const kernels::LogitsArgs& args, const RowOperands& operands,
                                   const reference::Accumulation& accumulation) {
  reference::LogitOperands row;
  row.heads = args.shape.config.index_n_heads;
  row.head_dim = args.shape.config.index_head_dim;
  row.queries = operands.queries;
  row.query_scales = operands.query_scales;
  row.head_weights = operands.head_weights;
  row.logit_scale = args.logit_scale;
  row.pools = operands.pools;
  row.pool_scales = operands.pool_scales;
  row.smallest_normal = smallest_normal(operand_dtype(args.shape.mode));
  const std::int64_t visible[] = {static_cast<std::int64_t>(operands.pools.size()) / row.head_dim};
  return reference::logits(row, visible, accumulation);
}

}  // namespace

std::vector<Check> check_logits(kernels::Target& target, const Placed& placed,
                                const kernels::LogitsArgs& args, const SampleOptions& options) {
  const std::int64_t pool_bytes = args.cache.page_stride / args.cache.states_per_page;
  Tally tally("bound");
  double largest = 0;
  for (const std::int64_t row :
       sampled(args.row_count, args.logits_stride * 4, options.samples, options.seed)) {
    const kernels::QueryRow& query = placed.host.rows[static_cast<std::size_t>(row)];
    const std::int64_t visible =
        reference::visible_pools(query.position, args.shape.config.index_kpool);
    const auto pools =
        sampled(visible, pool_bytes, pools_per_row, options.seed + static_cast<std::uint64_t>(row));
    const RowOperands operands = read_row(target, placed, args, row, pools);
    const reference::Bounded expected = expected_logits(args, operands, options.accumulation);
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const double found =
          downloaded(target, args.logits + row * args.logits_stride + pools[i], 1)[0];
      const double low = expected.low[i], high = expected.high[i];
      largest = std::max(largest, std::abs(expected.value[i]));
      tally.compare(reference::admits(low, high, found),
                    utilisation(found, expected.value[i], low, high), [&] {
                      return fmt::format("row {}, pool {}: {:.9g}, expected {:.9g} to {:.9g}", row,
                                         pools[i], found, low, high);
                    });
    }
  }
  if (largest == 0) tally.distrust("all sampled logits are zero");
  return {std::move(tally).finish()};
}

}  // namespace indexpool::verify::timing
