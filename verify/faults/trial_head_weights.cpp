// Faults into head weights: every trial is a row of the logits that the real kernel computes. What
// a consumer gets is the row's logits.
#include <cmath>

#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/faults/crc32c.hpp"
#include "indexpool/verify/faults/sites.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr std::int64_t heads = 32, tokens = 64, sequences = 8;

// Sequences of 64 tokens; the row of token t sees (t + 1) / 4 pools.
struct Scene {
  IndexerInputs inputs;
  CacheRun cache;
  QueryOutput queries;
  std::int64_t stride = 0;
  std::vector<std::int64_t> rows;  // that see a pool

  explicit Scene(const CampaignOptions& options) {
    Problem problem;
    problem.indexer = {heads, head_dim, 16, index_kpool, true};
    problem.mode = options.mode;
    problem.lengths.assign(sequences, tokens);
    problem.states_per_page = states_per_page;
    problem.seed = options.seed;
    inputs = make_case(problem).inputs;
    cache = run_kernels(inputs, {}, options.seed);
    stride = logits_stride(inputs, options.seed);
    const auto target = quiet_executor();
    StageContext context{*target, make_lookup({}), false};
    if (inputs.mode.quantised()) {
      queries = run_quantize_query(context, inputs);
    } else {
      const auto raw = inputs.queries.raw();
      queries.codes.assign(raw.begin(), raw.end());
    }
    for (std::int64_t row = 0; row < inputs.rows(); ++row) {
      if (visible_pools(row) > 0) rows.push_back(row);
    }
  }
  static std::unique_ptr<kernels::Target> quiet_executor() {
    sim::simt::Options executor;
    executor.count = false;
    return kernels::make_simt_target(executor);
  }
  static std::int64_t visible_pools(std::int64_t row) { return (row % tokens + 1) / index_kpool; }

  std::vector<float> logits(const IndexerInputs& with) const {
    const auto target = quiet_executor();
    StageContext context{*target, make_lookup({}), false};
    return run_logits(context, {with, cache.layout, cache.output.cache, queries.codes,
                                queries.scales, stride})
        .logits;
  }
};

std::span<std::byte> weights_of(Tensor& head_weights, std::int64_t row) {
  return {head_weights.data() + row * heads * 4, static_cast<std::size_t>(heads) * 4};
}

bool row_differs(const Scene& scene, const std::vector<float>& a, const std::vector<float>& b,
                 std::int64_t row) {
  for (std::int64_t pool = 0; pool < Scene::visible_pools(row); ++pool) {
    const auto i = static_cast<std::size_t>(row * scene.stride + pool);
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return true;
  }
  return false;
}

}  // namespace

Outcomes strike_head_weights(const Batch& batch) {
  const Scene scene(batch.bench.options);
  const std::vector<float> clean = scene.logits(scene.inputs);
  const auto per_launch = static_cast<std::int64_t>(scene.rows.size());
  std::vector<Touched> touched;
  Outcomes outcomes;
  for (std::int64_t first = 0; first < batch.trials; first += per_launch) {
    const std::int64_t trials = std::min(per_launch, batch.trials - first);
    IndexerInputs inputs = scene.inputs;
    inputs.head_weights = scene.inputs.head_weights.clone();
    std::vector<std::uint32_t> source;
    for (std::int64_t i = 0; i < trials; ++i) {
      const auto region = weights_of(inputs.head_weights, scene.rows[static_cast<std::size_t>(i)]);
      source.push_back(crc32c(region));
      batch.model.strike(region, batch.random, (first + i) * draws_per_fault, touched);
      touched.clear();
    }
    const std::vector<float> faulty = scene.logits(inputs);
    for (std::int64_t i = 0; i < trials; ++i) {
      const std::int64_t row = scene.rows[static_cast<std::size_t>(i)];
      const bool alarm =
          crc32c(weights_of(inputs.head_weights, row)) != source[static_cast<std::size_t>(i)];
      count(outcomes, row_differs(scene, clean, faulty, row),
            alarm ? static_cast<Alarms>(layer_source) : 0u);
    }
  }
  return outcomes;
}

}  // namespace indexpool::verify::faults
