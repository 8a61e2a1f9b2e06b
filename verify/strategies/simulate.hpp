// One sequence through one strategy: prefill in one go, then a token and a query a step.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/verify/strategies/cache.hpp"
#include "indexpool/verify/strategies/form.hpp"
#include "indexpool/verify/strategies/latency.hpp"
#include "indexpool/verify/strategies/settings.hpp"
#include "indexpool/verify/strategies/stream.hpp"

namespace indexpool::verify::strategies {

// Of the whole run, all layers; bytes of bf16 keys and of pools as they lie in the cache.
struct Counts {
  std::int64_t pools = 0;        // pooled, again or for the first time
  std::int64_t weight_sets = 0;  // computed: one a pool
  std::int64_t launches = 0;     // of kernels: weights, pooling, changes of format
  std::int64_t bytes_written = 0;
  std::int64_t bytes_stored = 0;    // at the end: pools, tail or all keys, what the strategy keeps
  std::int64_t bytes_expected = 0;  // the same by formula, from the final lengths and keys alone
  std::int64_t bytes_read = 0;      // in decode steps: by queries and by pooling
  Counts& operator+=(const Counts& other);
};

struct Monitor {
  double entropy = 0;          // sum over pools made, each over log of its vectors
  std::int64_t entropies = 0;  // pools of more than one vector
  std::int64_t hit_steps = 0;  // all selected pools current: of these keys, with these weights
  std::int64_t steps = 0;      // queries, of all layers
  std::int64_t normalisation_violations = 0, sums = 0;
  std::int64_t checksum_failures = 0, checksums = 0;
  double latency_s = 0, latency_low_s = 0, latency_high_s = 0;  // sum over decode steps
  Monitor& operator+=(const Monitor& other);
};

// Of incremental updates: pools left as they are, beside pools made anew at every step.
struct Staleness {
  std::int64_t compared = 0, violations = 0;  // channels
  double utilisation = 0;                     // worst difference over its bound
  double largest_change = 0;                  // over the keys' root mean square
  Staleness& operator+=(const Staleness& other);
};

struct StreamRun {
  std::vector<double> recall;  // of each step and layer
  Counts counts;
  Monitor monitor;
  Staleness staleness;
  std::vector<std::vector<Pool>> pools;  // of each layer, at the end
};

struct RunOptions {
  std::int64_t recall_k = 8, budget_tokens = 64;
  bool keep_pools = false;
};
// `revisions` are the stream's own options; ConfigError for a stream longer than edge mode takes.
StreamRun simulate(const Form& form, const Settings& settings, const StreamOptions& revisions,
                   Stream stream, PoolingLatency& latency, const RunOptions& options = {});

// What has to be kept besides pools: weights that are used again (f32, one set for all layers), and
// keys that are pooled again.
bool keeps_weights(const Form& form, const Settings& settings);
bool keeps_keys(const Form& form, const StreamOptions& revisions);
// Bytes at the end, from lengths, keys and settings alone.
std::int64_t stored_bytes(const Form& form, const Settings& settings,
                          const StreamOptions& revisions, const Stream& stream);
// |sum of shares - 1| beyond this is a violation: m + 2 roundings of binary64 (m summands, m
// quotients' shares of them, doubled).
double weight_sum_tolerance(std::int64_t vectors);

}  // namespace indexpool::verify::strategies
