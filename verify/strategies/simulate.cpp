#include "indexpool/verify/strategies/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/strategies/recall.hpp"

namespace indexpool::verify::strategies {
namespace {

constexpr std::int64_t key_element_bytes = 2;  // bf16

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

double relative_entropy(std::span<const double> shares) {
  double entropy = 0;
  for (const double share : shares)
    if (share > 0) entropy -= share * std::log(share);
  return entropy / std::log(static_cast<double>(shares.size()));
}

// Indices of pools by how many vectors they have: one launch each.
using BySize = std::map<std::int64_t, std::vector<std::size_t>>;

class Simulation {
 public:
  Simulation(const Form& form, const Settings& settings, const StreamOptions& revisions,
             Stream stream, PoolingLatency& latency, const RunOptions& options)
      : form_(form),
        settings_(settings),
        revisions_(revisions),
        stream_(std::move(stream)),
        latency_(latency),
        options_(options),
        revising_(revisions.small_chance > 0 || revisions.large_chance > 0) {
    run_.pools.resize(size(stream_.layers()));
  }

  StreamRun run() {
    update_all(-1, stream_.prefill());
    for (std::int64_t step = 0; step < stream_.steps; ++step) {
      const std::int64_t tokens = stream_.prefill() + step + 1;
      revise(revisions_, step, tokens - 1, stream_);
      if (settings_.edge.late_steps > 0) seen_ = run_.pools;
      update_all(step, tokens);
      for (std::int64_t layer = 0; layer < stream_.layers(); ++layer)
        query(settings_.edge.late_steps > 0 ? seen_[size(layer)] : run_.pools[size(layer)], layer,
              step, tokens);
    }
    count_stored();
    if (!options_.keep_pools) run_.pools.clear();
    return std::move(run_);
  }

 private:
  void update_all(std::int64_t step, std::int64_t tokens) {
    for (std::int64_t layer = 0; layer < stream_.layers(); ++layer) {
      const std::size_t first_new = align(layer, tokens);
      if (pooling_off(settings_.shorts, tokens)) {
        keep_keys(layer, first_new);
        continue;
      }
      Groups at{&stream_, layer, step, tokens, 0, {}};
      pool_again(at, outdated(at, first_new));
      change_formats(layer, tokens);
      if (settings_.incremental.threshold >= 0 && step >= 0) compare_with_fresh(at);
    }
  }

  // Pools that are still of the present groups stay; the index of the first that is new.
  std::size_t align(std::int64_t layer, std::int64_t tokens) {
    std::vector<Pool>& pools = run_.pools[size(layer)];
    const auto segments = segments_of(settings_, stream_.keys[0], stream_.head_dim, tokens);
    std::size_t same = 0;
    while (same < std::min(pools.size(), segments.size()) && pools[same].segment == segments[same])
      ++same;
    pools.resize(same);
    for (std::size_t i = same; i < segments.size(); ++i) pools.emplace_back().segment = segments[i];
    return same;
  }

  void keep_keys(std::int64_t layer, std::size_t first) {
    std::vector<Pool>& pools = run_.pools[size(layer)];
    for (std::size_t i = first; i < pools.size(); ++i) {
      store(stream_.group(layer, pools[i].segment.first, 1), DType::bf16, pools[i]);
      run_.counts.bytes_written += pools[i].bytes();
    }
  }

  BySize outdated(const Groups& at, std::size_t first_new) const {
    const std::vector<Pool>& pools = run_.pools[size(at.layer)];
    const bool due = form_.by_step && at.step >= 0 && weights_due(settings_.frequency, at.step);
    BySize result;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const Segment& segment = pools[i].segment;
      const bool moved =
          i < first_new && revising_ &&
          must_pool(settings_.incremental, stream_.group(at.layer, segment.first, segment.count),
                    pools[i].pooled_from);
      if (i >= first_new || due || moved) result[segment.count].push_back(i);
    }
    return result;
  }

  Groups groups_of(Groups at, std::int64_t vectors, const std::vector<std::size_t>& which) const {
    at.vectors = vectors;
    for (const std::size_t i : which) at.segments.push_back(run_.pools[size(at.layer)][i].segment);
    return at;
  }

  void pool_again(const Groups& at, const BySize& which) {
    for (const auto& [vectors, indices] : which) {
      const Groups groups = groups_of(at, vectors, indices);
      const bool shared = at.layer > 0 && shares_layers(settings_.frequency);
      std::vector<double> weights =
          shared ? first_layer_weights(indices) : weights_of(form_, groups);
      if (settings_.edge.weights_in_8_bits) weights = rounded(std::move(weights), vectors);
      const std::vector<double> values = pools_of(form_, groups, weights);
      for (std::size_t n = 0; n < indices.size(); ++n)
        put(at, indices[n], std::span(weights).subspan(n * size(vectors), size(vectors)),
            std::span(values).subspan(n * size(stream_.head_dim), size(stream_.head_dim)));
      count_launches(at, vectors, std::ssize(indices), shared);
    }
  }

  std::vector<double> first_layer_weights(const std::vector<std::size_t>& indices) const {
    std::vector<double> weights;
    for (const std::size_t i : indices) {
      const std::vector<double>& of = run_.pools[0][i].weights;
      weights.insert(weights.end(), of.begin(), of.end());
    }
    return weights;
  }

  static std::vector<double> rounded(std::vector<double> weights, std::int64_t vectors) {
    for (auto first = weights.begin(); first != weights.end(); first += vectors) {
      const auto codes = weights_of_8_bits({first, first + vectors});
      std::copy(codes.begin(), codes.end(), first);
    }
    return weights;
  }

  void put(const Groups& at, std::size_t index, std::span<const double> weights,
           std::span<const double> value) {
    Pool& pool = run_.pools[size(at.layer)][index];
    const Segment& segment = pool.segment;
    pool.weights.assign(weights.begin(), weights.end());
    pool.value.assign(value.begin(), value.end());
    const auto keys = stream_.group(at.layer, segment.first, segment.count);
    pool.pooled_from.assign(keys.begin(), keys.end());
    pool.weights_step = at.step;
    store(value, format(pool, at.tokens), pool);
    run_.counts.bytes_written += pool.bytes();
    ++run_.counts.pools;
    watch_weights(shares_of(form_, weights));
    if (at.step >= 0)
      run_.counts.bytes_read += segment.count * stream_.head_dim * key_element_bytes;
  }

  DType format(const Pool& pool, std::int64_t tokens) const {
    return format_of(settings_.precision, pool.segment, tokens, norm_of(pool.value),
                     stream_.mean_key_norm);
  }

  void watch_weights(const std::vector<double>& shares) {
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    ++run_.monitor.sums;
    if (!(std::abs(sum - 1) <= weight_sum_tolerance(std::ssize(shares))))
      ++run_.monitor.normalisation_violations;
    if (shares.size() < 2) return;
    run_.monitor.entropy += relative_entropy(shares);
    ++run_.monitor.entropies;
  }

  void count_launches(const Groups& at, std::int64_t vectors, std::int64_t groups, bool shared) {
    Counts& counts = run_.counts;
    counts.launches += 1 + (shared ? 0 : form_.launches_of_weights());
    if (!shared) counts.weight_sets += groups;
    if (at.step < 0) return;
    PoolingShape shape{form_.policy, groups,           vectors, stream_.head_dim, 1,
                       groups,       stream_.head_dim, !shared};
    const CostNumbers& time = latency_.of(shape);
    run_.monitor.latency_s += time.time.value;
    run_.monitor.latency_low_s += time.low.value;
    run_.monitor.latency_high_s += time.high.value;
  }

  // From the stored codes: nothing else is left of a pool that grows old.
  void change_formats(std::int64_t layer, std::int64_t tokens) {
    bool any = false;
    for (Pool& pool : run_.pools[size(layer)]) {
      const DType wanted = format(pool, tokens);
      if (wanted == pool.format) continue;
      store(load(pool), wanted, pool);
      run_.counts.bytes_written += pool.bytes();
      any = true;
    }
    run_.counts.launches += any ? 1 : 0;
  }

  void compare_with_fresh(const Groups& at) {
    const std::vector<Pool>& pools = run_.pools[size(at.layer)];
    BySize all;
    for (std::size_t i = 0; i < pools.size(); ++i) all[pools[i].segment.count].push_back(i);
    for (const auto& [vectors, indices] : all) {
      const Groups groups = groups_of(at, vectors, indices);
      const auto fresh = pools_of(form_, groups, weights_of(form_, groups));
      for (std::size_t n = 0; n < indices.size(); ++n)
        compare(at.layer, pools[indices[n]],
                std::span(fresh).subspan(n * size(stream_.head_dim), size(stream_.head_dim)));
    }
  }

  void compare(std::int64_t layer, const Pool& pool, std::span<const double> fresh) {
    Staleness& s = run_.staleness;
    const double threshold = settings_.incremental.threshold;
    const Segment& segment = pool.segment;
    const double change =
        largest_change(stream_.group(layer, segment.first, segment.count), pool.pooled_from);
    s.largest_change = std::max(s.largest_change, change / stream_.key_rms);
    const auto bound = staleness_bound(
        threshold, log_weight_change(form_.slope(), threshold, pool.weights, pool.pooled_from),
        pool.pooled_from, segment.count);
    for (std::size_t c = 0; c < bound.size(); ++c) {
      const double off = std::abs(fresh[c] - pool.value[c]);
      ++s.compared;
      if (!(off <= bound[c])) ++s.violations;
      if (bound[c] > 0) s.utilisation = std::max(s.utilisation, off / bound[c]);
    }
  }

  void query(const std::vector<Pool>& pools, std::int64_t layer, std::int64_t step,
             std::int64_t tokens) {
    std::vector<double> scores;
    std::vector<Segment> segments, kept;
    Counts& counts = run_.counts;
    for (const Pool& pool : pools) {
      scores.push_back(score_of(stream_, step, load(pool)));
      segments.push_back(pool.segment);
      counts.bytes_read += pool.bytes();
    }
    const std::int64_t tail = pools.empty() ? 0 : pools.back().segment.end();
    counts.bytes_read += (tokens - tail) * stream_.head_dim * key_element_bytes +
                         table_bytes(std::ssize(pools), tokens);
    bool hit = true;
    for (const std::size_t i : select_segments(scores, segments, options_.budget_tokens)) {
      kept.push_back(segments[i]);
      hit = hit && current(pools[i], layer, step);
      ++run_.monitor.checksums;
      if (!intact(pools[i])) ++run_.monitor.checksum_failures;
    }
    ++run_.monitor.steps;
    run_.monitor.hit_steps += hit ? 1 : 0;
    run_.recall.push_back(
        share_kept(oracle_tokens(stream_, layer, step, tokens, options_.recall_k), kept, tail));
  }

  bool current(const Pool& pool, std::int64_t layer, std::int64_t step) const {
    if (pool.weights.empty()) return true;  // a key, not pooled
    if (form_.by_step && pool.weights_step != step) return false;
    const Segment& segment = pool.segment;
    return !revising_ || largest_change(stream_.group(layer, segment.first, segment.count),
                                        pool.pooled_from) == 0;
  }

  std::int64_t table_bytes(std::int64_t pools, std::int64_t tokens) const {
    const bool used = settings_.adaptive.on && !pooling_off(settings_.shorts, tokens);
    return used ? pools * block_table_entry_bytes : 0;
  }

  void count_stored() {
    std::int64_t& stored = run_.counts.bytes_stored;
    for (const std::vector<Pool>& pools : run_.pools) {
      std::int64_t covered = 0;
      for (const Pool& pool : pools) {
        stored += pool.bytes();
        covered = pool.segment.end();
        if (settings_.incremental.threshold >= 0)
          stored += std::ssize(pool.pooled_from) * key_element_bytes;
      }
      const std::int64_t keys =
          keeps_keys(form_, revisions_) && !pooling_off(settings_.shorts, stream_.tokens)
              ? stream_.tokens
              : stream_.tokens - covered;
      stored += keys * stream_.head_dim * key_element_bytes;
    }
    stored += table_bytes(std::ssize(run_.pools[0]), stream_.tokens);
    if (keeps_weights(form_, settings_))
      for (const Pool& pool : run_.pools[0]) stored += std::ssize(pool.weights) * 4;
    run_.counts.bytes_expected = stored_bytes(form_, settings_, revisions_, stream_);
  }

  const Form& form_;
  const Settings& settings_;
  const StreamOptions& revisions_;
  Stream stream_;
  PoolingLatency& latency_;
  RunOptions options_;
  bool revising_;
  StreamRun run_;
  std::vector<std::vector<Pool>> seen_;
};

}  // namespace

StreamRun simulate(const Form& form, const Settings& settings, const StreamOptions& revisions,
                   Stream stream, PoolingLatency& latency, const RunOptions& options) {
  validate(settings);
  require_edge_length(settings.edge, stream.tokens);
  return Simulation(form, settings, revisions, std::move(stream), latency, options).run();
}

}  // namespace indexpool::verify::strategies
