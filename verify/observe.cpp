#include "indexpool/verify/observe.hpp"

#include "indexpool/reference/indexer.hpp"

namespace indexpool::verify {
namespace {

// Rows of `width` values as the reference would store and read them back.
std::vector<double> stored_values(std::span<const double> values, std::int64_t width,
                                  const NumericMode& mode) {
  std::vector<double> stored(values.begin(), values.end());
  if (!mode.quantised()) return stored;
  const auto row = static_cast<std::size_t>(width);
  for (std::size_t first = 0; first < stored.size(); first += row) {
    const reference::Quantised quantised = reference::quantise(values.subspan(first, row), mode);
    for (std::size_t i = 0; i < row; ++i) stored[first + i] = quantised.codes[i] * quantised.scale;
  }
  return stored;
}

}  // namespace

void observe_pools(const Options& options, const IndexerInputs& inputs, Op op,
                   const StoredPools& stored, const reference::Pooled& expected, Mask mine) {
  if (!options.observe) return;
  Observation seen{op, stored.head_dim, {}, {}, {}};
  const auto dim = static_cast<std::size_t>(stored.head_dim);
  for (std::size_t pool = 0; pool < mine.size(); ++pool) {
    if (mine[pool] == 0) continue;
    for (std::size_t c = pool * dim; c < (pool + 1) * dim; ++c) {
      seen.found.push_back(stored.codes[c] * stored.scales[pool]);
      seen.expected.push_back(expected.rotated.value[c]);
    }
  }
  if (seen.found.empty()) return;
  seen.stored = stored_values(seen.expected, seen.width, inputs.mode);
  options.observe(seen);
}

void observe_queries(const Options& options, const IndexerInputs& inputs,
                     const QueryOutput& output) {
  if (!options.observe || output.codes.empty()) return;
  const std::int64_t dim = inputs.config.index_head_dim;
  Observation seen{Op::quantize_query,
                   dim,
                   decode(inputs.mode.cache, output.codes),
                   reference::rotate_queries(inputs).value,
                   {}};
  for (std::size_t i = 0; i < seen.found.size(); ++i)
    seen.found[i] *= output.scales[i / static_cast<std::size_t>(dim)];
  seen.stored = stored_values(seen.expected, dim, inputs.mode);
  options.observe(seen);
}

void observe_logits(const Options& options, const IndexerInputs& inputs, const LogitBounds& bounds,
                    std::span<const float> logits, std::int64_t stride) {
  if (!options.observe) return;
  Observation seen{Op::logits, 1, {}, {}, {}};
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto& expected = bounds.sequences[static_cast<std::size_t>(query.request)];
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    for (std::int64_t p = 0; p < visible; ++p) {
      seen.found.push_back(logits[static_cast<std::size_t>(row * stride + p)]);
      seen.expected.push_back(
          expected.value[static_cast<std::size_t>(query.position * expected.shape[1] + p)]);
    }
    ++row;
  }
  seen.stored = seen.expected;
  if (!seen.found.empty()) options.observe(seen);
}

void observe_selection(const Options& options, const IndexerInputs& inputs,
                       std::span<const float> logits, std::int64_t stride,
                       std::span<const std::int32_t> selection) {
  if (!options.observe) return;
  Observation seen{
      Op::topk, inputs.config.selection_width(), {selection.begin(), selection.end()}, {}, {}};
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto visible = static_cast<std::size_t>(
        reference::visible_pools(query.position, inputs.config.index_kpool));
    const auto scores = logits.subspan(static_cast<std::size_t>(row * stride), visible);
    const std::vector<double> values(scores.begin(), scores.end());
    const auto tokens = reference::expand(reference::select(values, inputs.config.topk_pools()),
                                          query.position, query.first_key, inputs.config);
    seen.expected.insert(seen.expected.end(), tokens.begin(), tokens.end());
    ++row;
  }
  seen.stored = seen.expected;
  if (!seen.found.empty()) options.observe(seen);
}

}  // namespace indexpool::verify
