// Pools as stored, against the reference's enclosures.
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

struct RowBounds {
  std::span<const double> value, low, high;
};
RowBounds row_of(const reference::Bounded& bounds, std::int64_t row, std::int64_t width) {
  const auto first = static_cast<std::size_t>(row * width), count = static_cast<std::size_t>(width);
  return {std::span(bounds.value).subspan(first, count),
          std::span(bounds.low).subspan(first, count),
          std::span(bounds.high).subspan(first, count)};
}

bool usable_scale(double scale) { return std::isfinite(scale) && scale > 0; }

// One vector's scale and codes; shared by pools and queries.
template <class Name>
void compare_scale(const RowBounds& row, double scale, const NumericMode& mode, const Name& name,
                   Tally& tally) {
  const reference::Range range = reference::scale_enclosure(row.low, row.high, mode);
  tally.compare(reference::admits(range.low, range.high, scale), [&] {
    return fmt::format("{}: scale {:.9g}, expected {}", name(), scale,
                       range.low == range.high
                           ? fmt::format("{:.9g}", range.low)
                           : fmt::format("between {:.9g} and {:.9g}", range.low, range.high));
  });
}

template <class Name>
void compare_codes(const RowBounds& row, std::span<const double> codes, double scale,
                   const NumericMode& mode, const Name& name, Tally& tally) {
  if (!usable_scale(scale)) {
    const reference::Range scales = reference::scale_enclosure(row.low, row.high, mode);
    if (reference::is_open(scales.low, scales.high)) return;
    tally.compare(false, [&] { return fmt::format("{}: no codes without a scale", name()); });
    return;
  }
  for (std::size_t c = 0; c < codes.size(); ++c) {
    const reference::Range range = reference::code_enclosure(row.low[c], row.high[c], scale, mode);
    tally.compare(reference::admits(range.low, range.high, codes[c]), [&] {
      return fmt::format("{}, channel {}: code {:g}, expected {:g} to {:g} ({:.9g} / {:.9g})",
                         name(), c, codes[c], range.low, range.high, row.value[c], scale);
    });
  }
}

}  // namespace

Check check_pool_bound(const IndexerInputs& inputs, const StoredPools& stored,
                       const reference::Pooled& expected, Mask mine) {
  Tally tally("bound");
  const std::int64_t dim = stored.head_dim;
  // Values rounded to 16 bits are admissible or not; how far across a set of two says nothing.
  const bool rounded = info(inputs.mode.cache).bytes < 4;
  std::int64_t open = 0;
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    if (mine[static_cast<std::size_t>(pool)] == 0) continue;
    const RowBounds row = row_of(expected.rotated, pool, dim);
    for (std::size_t c = 0; c < row.value.size(); ++c) {
      const double x = stored.codes[static_cast<std::size_t>(pool * dim) + c];
      if (reference::is_open(row.low[c], row.high[c])) ++open;
      tally.compare(reference::admits(row.low[c], row.high[c], x),
                    rounded ? 0 : utilisation(x, row.value[c], row.low[c], row.high[c]), [&] {
                      return fmt::format("{}, channel {}: {:.9g}, expected {:.9g} to {:.9g}",
                                         pool_name(inputs, pool), c, x, row.low[c], row.high[c]);
                    });
    }
  }
  const std::string vacuous = why_vacuous(expected.rotated, dim, mine, "pools");
  if (!vacuous.empty()) tally.distrust(vacuous);
  tally.excuse(open);
  return std::move(tally).finish();
}

Check check_pool_scale(const IndexerInputs& inputs, const StoredPools& stored,
                       const reference::Pooled& expected, Mask mine) {
  Tally tally("scale");
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    if (mine[static_cast<std::size_t>(pool)] == 0) continue;
    compare_scale(
        row_of(expected.rotated, pool, stored.head_dim),
        stored.scales[static_cast<std::size_t>(pool)], inputs.mode,
        [&] { return pool_name(inputs, pool); }, tally);
  }
  return std::move(tally).finish();
}

Check check_pool_quantiser(const IndexerInputs& inputs, const StoredPools& stored,
                           const reference::Pooled& expected, Mask mine) {
  Tally tally("quantiser");
  const std::int64_t dim = stored.head_dim;
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    if (mine[static_cast<std::size_t>(pool)] == 0) continue;
    const auto codes =
        std::span(stored.codes)
            .subspan(static_cast<std::size_t>(pool * dim), static_cast<std::size_t>(dim));
    compare_codes(
        row_of(expected.rotated, pool, dim), codes, stored.scales[static_cast<std::size_t>(pool)],
        inputs.mode, [&] { return pool_name(inputs, pool); }, tally);
  }
  const std::string vacuous = why_vacuous(expected.rotated, dim, mine, "pools");
  if (!vacuous.empty()) tally.distrust(vacuous);
  return std::move(tally).finish();
}

Check check_query_scale(const IndexerInputs& inputs, const QueryOutput& output,
                        const reference::Bounded& rotated) {
  Tally tally("scale");
  const std::int64_t heads = inputs.config.index_n_heads;
  for (std::size_t i = 0; i < output.scales.size(); ++i) {
    const auto vector = static_cast<std::int64_t>(i);
    compare_scale(
        row_of(rotated, vector, inputs.config.index_head_dim), output.scales[i], inputs.mode,
        [&] { return fmt::format("row {}, head {}", vector / heads, vector % heads); }, tally);
  }
  return std::move(tally).finish();
}

Check check_query_quantiser(const IndexerInputs& inputs, const QueryOutput& output,
                            const reference::Bounded& rotated) {
  Tally tally("quantiser");
  const std::int64_t heads = inputs.config.index_n_heads, dim = inputs.config.index_head_dim;
  const std::vector<double> codes = decode(inputs.mode.cache, output.codes);
  for (std::size_t i = 0; i < output.scales.size(); ++i) {
    const auto vector = static_cast<std::int64_t>(i);
    compare_codes(
        row_of(rotated, vector, dim),
        std::span(codes).subspan(i * static_cast<std::size_t>(dim), static_cast<std::size_t>(dim)),
        output.scales[i], inputs.mode,
        [&] { return fmt::format("row {}, head {}", vector / heads, vector % heads); }, tally);
  }
  const std::string vacuous = why_vacuous(rotated, dim, {}, "query vectors");
  if (!vacuous.empty()) tally.distrust(vacuous);
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
