// Faults into head weights. What a consumer gets is a row of logits,
//   logits[p] = s_p * sum_h (head_weights[h] * logit_scale * query_scale[h]) * relu(q_h . k_p),
// here in f32, heads in order, from the codes and scales that the real kernels made.
#include <algorithm>
#include <cmath>

#include "indexpool/verify/faults/crc32c.hpp"
#include "indexpool/verify/faults/head_weights.hpp"
#include "indexpool/verify/faults/sites.hpp"
#include "indexpool/verify/stored.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr std::int64_t heads = 32, tokens = 36, sequences = 12;

IndexerInputs scene_inputs(const std::string& mode, std::uint64_t seed) {
  Problem problem;
  problem.indexer = {heads, head_dim, 16, index_kpool, true};
  problem.mode = mode;
  problem.lengths.assign(sequences, tokens);
  problem.states_per_page = states_per_page;
  problem.seed = seed;
  return make_case(problem).inputs;
}

}  // namespace

HeadWeightScene::HeadWeightScene(const std::string& mode, std::uint64_t seed)
    : inputs(scene_inputs(mode, seed)), cache(run_kernels(inputs, {}, seed)) {
  queries = run_queries(inputs);
  const StoredPools pools = read_stored(inputs, cache.layout, cache.output.cache);
  const std::vector<double> codes = decode(inputs.mode.cache, queries.codes);
  const std::vector<std::int64_t> first = first_pools(inputs);
  for (std::int64_t row = 0; row < inputs.rows(); ++row) {
    const std::int64_t visible = (row % tokens + 1) / index_kpool;
    if (visible == 0) continue;
    Row scene{row, {}, {}, {}};
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto vector = static_cast<std::size_t>(row * heads + h);
      const float scale = queries.scales.empty() ? 1.0f : queries.scales[vector];
      scene.factors.push_back(static_cast<float>(inputs.logit_scale) * scale);
    }
    for (std::int64_t p = 0; p < visible; ++p) {
      const std::int64_t pool = first[static_cast<std::size_t>(row / tokens)] + p;
      scene.scales.push_back(static_cast<float>(pools.scales[static_cast<std::size_t>(pool)]));
      for (std::int64_t h = 0; h < heads; ++h) {
        double dot = 0;
        for (std::int64_t c = 0; c < head_dim; ++c) {
          dot += codes[static_cast<std::size_t>((row * heads + h) * head_dim + c)] *
                 pools.codes[static_cast<std::size_t>(pool * head_dim + c)];
        }
        scene.products.push_back(static_cast<float>(std::max(dot, 0.0)));
      }
    }
    rows.push_back(std::move(scene));
  }
}

std::vector<float> HeadWeightScene::logits(const Row& row, std::span<const float> weights) {
  std::vector<float> logits;
  for (std::size_t p = 0; p < row.scales.size(); ++p) {
    float sum = 0;
    for (std::size_t h = 0; h < weights.size(); ++h) {
      sum = std::fma(weights[h] * row.factors[h], row.products[p * weights.size() + h], sum);
    }
    logits.push_back(sum * row.scales[p]);
  }
  return logits;
}

std::span<const float> HeadWeightScene::weights(const Row& row) const {
  return inputs.head_weights.as<float>().subspan(static_cast<std::size_t>(row.row * heads),
                                                 static_cast<std::size_t>(heads));
}

Outcomes strike_head_weights(const Batch& batch) {
  const HeadWeightScene scene(batch.bench.options.mode, batch.bench.options.seed);
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  std::vector<Touched> touched;
  Outcomes outcomes;
  for (std::int64_t trial = 0; trial < batch.trials; ++trial) {
    const auto& row = scene.rows[static_cast<std::size_t>(trial) % scene.rows.size()];
    const std::span<const float> clean = scene.weights(row);
    std::vector<float> faulty(clean.begin(), clean.end());
    const std::uint32_t source = crc32c(std::as_bytes(clean));
    batch.model.strike(std::as_writable_bytes(std::span(faulty)), batch.random,
                       trial * draws_per_fault, touched);
    touched.clear();
    const bool alarm = crc32c(std::as_bytes(std::span(faulty))) != source;
    const bool visible = !std::ranges::equal(HeadWeightScene::logits(row, clean),
                                             HeadWeightScene::logits(row, faulty), same);
    count(outcomes, visible, alarm ? static_cast<Alarms>(layer_source) : 0u);
  }
  return outcomes;
}

}  // namespace indexpool::verify::faults
