// Faults into what the pool kernel reads: every trial is a pool (or a small cache) that the real
// kernel computes from faulty inputs, as consistently as it would on a machine.
#include <algorithm>

#include "indexpool/verify/faults/crc32c.hpp"
#include "indexpool/verify/faults/sites.hpp"

namespace indexpool::verify::faults {
namespace {

// Pools of one launch; each is a trial of its own.
constexpr std::int64_t pools_per_launch = 2048;
constexpr std::int64_t pools_per_ape = 8;

std::int64_t row_bytes(const Tensor& rows) { return rows.dim(1) * info(rows.dtype()).bytes; }

// The rows of pool `pool` of a single sequence.
std::span<std::byte> rows_of(Tensor& rows, std::int64_t pool) {
  const std::int64_t bytes = index_kpool * row_bytes(rows);
  return {rows.data() + pool * bytes, static_cast<std::size_t>(bytes)};
}

// The source's checksum of one pool's rows.
std::uint32_t source_crc(IndexerInputs& inputs, std::int64_t pool) {
  return crc32c(rows_of(inputs.gate_scores, pool), crc32c(rows_of(inputs.keys, pool)));
}

// What a run of the pool kernel on one sequence left.
struct Pooled {
  std::vector<StoredPage> pages;

  explicit Pooled(const IndexerInputs& inputs, const PageShape& shape, std::uint64_t seed)
      : pages(pages_of(inputs, run_kernels(inputs, {}, seed), shape)) {}
};

// Pool `pool` of both: whether a consumer would read other numbers, and the alarms of the fold.
bool pool_differs(const PageShape& shape, const Pooled& clean, const Pooled& faulty,
                  std::int64_t pool) {
  const auto page = static_cast<std::size_t>(pool / shape.states);
  return state_differs(shape, clean.pages[page].bytes, faulty.pages[page].bytes,
                       pool % shape.states);
}
Alarms fold_alarms(const Bench& bench, const Pooled& faulty, std::int64_t pool) {
  const StoredPage& page = faulty.pages[static_cast<std::size_t>(pool / bench.shape.states)];
  const std::int64_t state = pool % bench.shape.states;
  return check_pool(bench.shape, bench.link, codes_of(bench.shape, page.bytes, state),
                    scale_of(bench.shape, page.bytes, state),
                    page.checksums[static_cast<std::size_t>(state)]);
}
// The consumer's. Its form check looks at every pool of the page, so that bit is left to the fold,
// which looks at the trial's own.
Alarms consumer_alarms(const Bench& bench, const Pooled& faulty, std::int64_t pool) {
  const StoredPage& page = faulty.pages[static_cast<std::size_t>(pool / bench.shape.states)];
  return check_page(bench.shape, page.bytes, page.seal) & ~static_cast<Alarms>(layer_form);
}

enum class Moment { after_source_checksum, before_any_checksum };
using Rows = Tensor IndexerInputs::*;

// One launch: trial first + i strikes pool i.
void strike_launch(const Batch& batch, Rows rows, Moment moment, std::int64_t first,
                   std::int64_t trials, const IndexerInputs& clean_inputs, const Pooled& clean,
                   Outcomes& outcomes) {
  IndexerInputs inputs = clean_inputs;
  inputs.keys = clean_inputs.keys.clone();
  inputs.gate_scores = clean_inputs.gate_scores.clone();
  std::vector<std::uint32_t> source;
  std::vector<Touched> touched;
  for (std::int64_t pool = 0; pool < trials; ++pool) {
    if (moment == Moment::after_source_checksum) source.push_back(source_crc(inputs, pool));
    batch.model.strike(rows_of(inputs.*rows, pool), batch.random, (first + pool) * draws_per_fault,
                       touched);
    touched.clear();
    if (moment == Moment::before_any_checksum) source.push_back(source_crc(inputs, pool));
  }
  const Pooled faulty(inputs, batch.bench.shape, batch.bench.options.seed);
  for (std::int64_t pool = 0; pool < trials; ++pool) {
    Alarms alarms = fold_alarms(batch.bench, faulty, pool);
    alarms |= consumer_alarms(batch.bench, faulty, pool);
    if (source_crc(inputs, pool) != source[static_cast<std::size_t>(pool)]) alarms |= layer_source;
    count(outcomes, pool_differs(batch.bench.shape, clean, faulty, pool), alarms);
  }
}

Outcomes strike_rows(const Batch& batch, Rows rows, Moment moment) {
  const CampaignOptions& options = batch.bench.options;
  const std::int64_t pools = std::min(batch.trials, pools_per_launch);
  const IndexerInputs inputs =
      draw_inputs(options.mode, "normal", {pools * index_kpool}, options.seed);
  const Pooled clean(inputs, batch.bench.shape, options.seed);
  Outcomes outcomes;
  for (std::int64_t first = 0; first < batch.trials; first += pools) {
    strike_launch(batch, rows, moment, first, std::min(pools, batch.trials - first), inputs, clean,
                  outcomes);
  }
  return outcomes;
}

}  // namespace

Outcomes strike_keys(const Batch& batch) {
  return strike_rows(batch, &IndexerInputs::keys, Moment::after_source_checksum);
}
Outcomes strike_keys_unsealed(const Batch& batch) {
  return strike_rows(batch, &IndexerInputs::keys, Moment::before_any_checksum);
}
Outcomes strike_gates(const Batch& batch) {
  return strike_rows(batch, &IndexerInputs::gate_scores, Moment::after_source_checksum);
}

// The position bias is shared by all pools of a launch: a trial is a launch of a few pools.
Outcomes strike_ape(const Batch& batch) {
  const CampaignOptions& options = batch.bench.options;
  IndexerInputs inputs =
      draw_inputs(options.mode, "normal", {pools_per_ape * index_kpool}, options.seed);
  const Pooled clean(inputs, batch.bench.shape, options.seed);
  const Tensor clean_ape = inputs.ape;
  const std::uint32_t source = crc32c(clean_ape.raw());
  std::vector<Touched> touched;
  Outcomes outcomes;
  for (std::int64_t trial = 0; trial < batch.trials; ++trial) {
    inputs.ape = clean_ape.clone();
    const std::span<std::byte> region{inputs.ape.data(), inputs.ape.raw().size()};
    batch.model.strike(region, batch.random, trial * draws_per_fault, touched);
    touched.clear();
    const Pooled faulty(inputs, batch.bench.shape, options.seed);
    Alarms alarms = crc32c(inputs.ape.raw()) != source ? static_cast<Alarms>(layer_source) : 0u;
    bool visible = false;
    for (std::int64_t pool = 0; pool < pools_per_ape; ++pool) {
      alarms |= fold_alarms(batch.bench, faulty, pool);
      visible = visible || pool_differs(batch.bench.shape, clean, faulty, pool);
    }
    alarms |= consumer_alarms(batch.bench, faulty, 0);
    count(outcomes, visible, alarms);
  }
  return outcomes;
}

}  // namespace indexpool::verify::faults
