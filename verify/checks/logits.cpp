#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

// The share of one sequence in a span over all rows or pools, `width` elements each.
std::span<const double> slice(const std::vector<double>& values, std::int64_t first,
                              std::int64_t count, std::int64_t width) {
  if (values.empty()) return {};
  return std::span(values).subspan(static_cast<std::size_t>(first * width),
                                   static_cast<std::size_t>(count * width));
}

std::int64_t columns(const reference::Bounded& bounds) {
  return bounds.shape.size() == 2 ? bounds.shape[1] : 0;
}

// Whether the enclosures of a row say less than its values do; open ones are counted elsewhere.
bool loose_row(const reference::Bounded& bounds, std::int64_t first, std::int64_t visible) {
  double least = HUGE_VAL, most = -HUGE_VAL, widest = 0;
  for (std::int64_t p = 0; p < visible; ++p) {
    const auto i = static_cast<std::size_t>(first + p);
    if (reference::is_open(bounds.low[i], bounds.high[i])) continue;
    least = std::min(least, bounds.value[i]);
    most = std::max(most, bounds.value[i]);
    widest = std::max({widest, bounds.high[i] - bounds.value[i], bounds.value[i] - bounds.low[i]});
  }
  return widest > 0 && widest > std::max(most - least, std::max(std::abs(most), std::abs(least)));
}

}  // namespace

LogitBounds logit_bounds(const IndexerInputs& inputs, const Operands& operands,
                         const reference::Accumulation& accumulation) {
  const IndexerConfig& config = inputs.config;
  const std::vector<std::int64_t> first_pool = first_pools(inputs);
  std::vector<double> head_weights(static_cast<std::size_t>(inputs.head_weights.size()));
  for (std::int64_t i = 0; i < inputs.head_weights.size(); ++i) {
    head_weights[static_cast<std::size_t>(i)] = inputs.head_weights.at(i);
  }
  LogitBounds bounds;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    const std::int64_t pools = first_pool[s + 1] - first_pool[s];
    std::vector<std::int64_t> visible;
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      visible.push_back(reference::visible_pools(i, config.index_kpool));
    }
    if (pools == 0) {
      bounds.sequences.emplace_back(Shape{sequence.length, 0});
      continue;
    }
    reference::LogitOperands row;
    row.heads = config.index_n_heads;
    row.head_dim = config.index_head_dim;
    row.queries =
        slice(operands.queries, sequence.first_row, sequence.length, row.heads * row.head_dim);
    row.query_scales = slice(operands.query_scales, sequence.first_row, sequence.length, row.heads);
    row.head_weights = slice(head_weights, sequence.first_row, sequence.length, row.heads);
    row.logit_scale = static_cast<double>(static_cast<float>(inputs.logit_scale));
    row.smallest_normal = operands.smallest_normal;
    row.pools = slice(operands.pools.codes, first_pool[s], pools, row.head_dim);
    if (inputs.mode.quantised())
      row.pool_scales = slice(operands.pools.scales, first_pool[s], pools, 1);
    bounds.sequences.push_back(reference::logits(row, visible, accumulation));
  }
  return bounds;
}

Check check_logit_bound(const IndexerInputs& inputs, const LogitBounds& bounds,
                        std::span<const float> logits, std::int64_t stride, bool about_ties) {
  Tally tally("bound");
  std::int64_t rows = 0, loose = 0, open = 0;
  double largest = 0;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    const reference::Bounded& expected = bounds.sequences[s];
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      const std::int64_t visible = reference::visible_pools(i, inputs.config.index_kpool);
      if (visible == 0) continue;
      const std::int64_t first = i * columns(expected);
      ++rows;
      if (loose_row(expected, first, visible)) ++loose;
      for (std::int64_t p = 0; p < visible; ++p) {
        const auto at = static_cast<std::size_t>(first + p);
        const double low = expected.low[at], high = expected.high[at];
        const double x = logits[static_cast<std::size_t>((sequence.first_row + i) * stride + p)];
        largest = std::max(largest, std::abs(expected.value[at]));
        if (reference::is_open(low, high)) ++open;
        tally.compare(reference::admits(low, high, x),
                      utilisation(x, expected.value[at], low, high), [&] {
                        return fmt::format(
                            "sequence {}, token {}, pool {}: {:.9g}, expected {:.9g} to {:.9g}", s,
                            i, p, x, low, high);
                      });
      }
    }
  }
  constexpr double unusual = 0.9;  // worst-case bounds: rounding errors reach a few tenths of them
  tally.watch(unusual);
  if (rows > 0 && largest == 0) {
    if (about_ties) {
      tally.note("all logits are zero, as this fill wants");
    } else {
      tally.distrust("all logits are zero");
    }
  } else if (2 * loose > rows) {
    tally.distrust(fmt::format("the bound is wider than the logits in {} of {} rows", loose, rows));
  }
  tally.excuse(open);
  return std::move(tally).finish();
}

Check check_logits_untouched(const IndexerInputs& inputs, std::span<const float> logits,
                             std::int64_t stride) {
  Tally tally("untouched");
  constexpr std::uint32_t poisoned = 0xffffffffu;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      const std::int64_t visible = reference::visible_pools(i, inputs.config.index_kpool);
      for (std::int64_t p = visible; p < stride; ++p) {
        const float x = logits[static_cast<std::size_t>((sequence.first_row + i) * stride + p)];
        tally.compare(std::bit_cast<std::uint32_t>(x) == poisoned, [&] {
          return fmt::format(
              "sequence {}, token {}, column {}: written, but only {} pools are visible", s, i, p,
              visible);
        });
      }
    }
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
