// Small streams, and forms whose numbers can be followed by hand.
#pragma once

#include "indexpool/model/config.hpp"
#include "indexpool/verify/strategies/strategies.hpp"

namespace indexpool::verify::strategies {

inline StreamOptions small_options(std::uint64_t seed = 1, std::int64_t tokens = 96,
                                   std::int64_t steps = 12) {
  StreamOptions options;
  options.seed = seed;
  options.sequences = 2;
  options.tokens = tokens;
  options.steps = steps;
  return options;
}

inline RunOptions small_run() { return {4, 16, true}; }

inline PoolingLatency a100() { return PoolingLatency(load_device("a100-sxm4-80gb")); }

// What of two runs can differ: everything that is counted or judged.
inline bool same_run(const StreamRun& a, const StreamRun& b) {
  if (a.pools.size() != b.pools.size() || a.recall != b.recall) return false;
  for (std::size_t layer = 0; layer < a.pools.size(); ++layer) {
    if (a.pools[layer].size() != b.pools[layer].size()) return false;
    for (std::size_t i = 0; i < a.pools[layer].size(); ++i) {
      const Pool &x = a.pools[layer][i], &y = b.pools[layer][i];
      if (x.codes != y.codes || x.scale != y.scale || x.segment != y.segment) return false;
    }
  }
  return true;
}
inline bool same_counts(const StreamRun& a, const StreamRun& b) {
  return a.counts.pools == b.counts.pools && a.counts.launches == b.counts.launches &&
         a.counts.weight_sets == b.counts.weight_sets &&
         a.counts.bytes_written == b.counts.bytes_written &&
         a.counts.bytes_stored == b.counts.bytes_stored &&
         a.counts.bytes_read == b.counts.bytes_read;
}

}  // namespace indexpool::verify::strategies
