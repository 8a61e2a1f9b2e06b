// Sampled rows of selected tokens, against the logits they were selected from.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/measure/sample.hpp"

namespace indexpool::verify::timing {
namespace {

// "selection": what is selected has the largest logits, and of those that equal the smallest
// selected one the lowest pools. One pass over the row, which may hold millions.
void compare_selection(std::int64_t row, const std::vector<float>& logits,
                       const std::vector<std::int64_t>& selected, Tally& tally) {
  std::vector<char> taken(logits.size(), 0);
  float least = std::numeric_limits<float>::infinity();
  for (const std::int64_t pool : selected) {
    taken[static_cast<std::size_t>(pool)] = 1;
    least = std::min(least, logits[static_cast<std::size_t>(pool)]);
  }
  std::int64_t last_equal = -1;  // of the selected
  for (const std::int64_t pool : selected)
    if (logits[static_cast<std::size_t>(pool)] == least) last_equal = std::max(last_equal, pool);
  std::int64_t wrong = -1;
  for (std::size_t pool = 0; pool < logits.size() && wrong < 0; ++pool) {
    if (taken[pool] != 0) continue;
    const bool before = static_cast<std::int64_t>(pool) < last_equal;
    if (logits[pool] > least || (logits[pool] == least && before))
      wrong = static_cast<std::int64_t>(pool);
  }
  tally.compare(wrong < 0, [&] {
    return fmt::format("row {}: pool {} with logit {:.9g} is left out, {:.9g} is selected", row,
                       wrong, logits[static_cast<std::size_t>(wrong)], least);
  });
}

// As kernels/args.hpp lays a row out: pools ascending, then -1; a forced tail from column
// index_topk on, then -1.
std::vector<std::int32_t> laid_out(const std::vector<std::int64_t>& pools,
                                   const kernels::QueryRow& query, const IndexerConfig& config) {
  std::vector<std::int32_t> row(static_cast<std::size_t>(config.selection_width()), -1);
  const auto token = [&](std::int64_t position) {
    return static_cast<std::int32_t>(query.first_key + position);
  };
  auto to = row.begin();
  for (const std::int64_t pool : pools)
    for (std::int64_t j = 0; j < config.index_kpool; ++j)
      *to++ = token(pool * config.index_kpool + j);
  if (!config.index_kpool_always_select_tail) return row;
  to = row.begin() + config.index_topk;
  const std::int64_t pooled =
      reference::visible_pools(query.position, config.index_kpool) * config.index_kpool;
  for (std::int64_t position = pooled; position <= query.position; ++position)
    *to++ = token(position);
  return row;
}

}  // namespace

std::vector<Check> check_selections(kernels::Target& target, const Placed& placed,
                                    const kernels::TopkArgs& args, const SampleOptions& options) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t width = config.selection_width();
  Tally structure("structure"), selection("selection");
  for (const std::int64_t row :
       sampled(args.row_count, args.logits_stride * 4, options.samples, options.seed)) {
    const kernels::QueryRow& query = placed.host.rows[static_cast<std::size_t>(row)];
    const auto tokens = downloaded(target, args.selection + row * width, width);
    const ParsedRow parsed = parse_selection(tokens, query.position, query.first_key, config);
    const bool in_order = parsed.fault.empty() && laid_out(parsed.pools, query, config) == tokens;
    structure.compare(in_order, [&] {
      return fmt::format(
          "row {}: {}", row,
          parsed.fault.empty() ? "tokens not in the documented order" : parsed.fault);
    });
    if (!parsed.fault.empty()) continue;
    const std::int64_t visible = reference::visible_pools(query.position, config.index_kpool);
    compare_selection(row, downloaded(target, args.logits + row * args.logits_stride, visible),
                      parsed.pools, selection);
  }
  return {std::move(selection).finish(), std::move(structure).finish()};
}

}  // namespace indexpool::verify::timing
