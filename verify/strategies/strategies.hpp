// The dynamic strategies of the published forms: what each saves, and what it costs in recall
// beside the same form without it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reference/training/evaluate.hpp"
#include "indexpool/verify/strategies/asynchronous.hpp"
#include "indexpool/verify/strategies/simulate.hpp"

namespace indexpool::verify::strategies {

struct StrategyOptions {
  std::vector<std::string> names;  // empty: all
  std::int64_t tokens = 512, sequences = 24, steps = 48;
  std::uint64_t seed = 1;
  std::string device = "a100-sxm4-80gb";  // of predicted times
  RunOptions run;
  std::string repeat;                                // the command line, for records
  std::function<void(const std::string&)> progress;  // before each variant
};

// One way to set a strategy, and what it is compared with: the same form on the same streams.
struct Variant {
  std::string name, beside;
  std::string policy;
  bool by_step = false;  // weights that change with every step
  Settings settings, baseline;
  StreamOptions stream;
  std::optional<OverlapOptions> overlap = std::nullopt;
};

struct StrategyInfo {
  std::string_view name;
  std::string_view article;  // "A" to "E"; "next": announced
  std::string_view decides;
  std::vector<Variant> (*variants)(const StreamOptions& stream);
};
const std::vector<StrategyInfo>& strategies();
std::vector<std::string> strategy_names();

struct Outcome {
  std::string strategy, article;
  Variant variant;
  reference::training::Interval recall, baseline_recall;  // over sequences, 95 %
  reference::training::Interval difference;               // recall with less recall without, paired
  std::int64_t sequences = 0;
  Counts counts, baseline;  // of all sequences
  Monitor monitor, baseline_monitor;
  Staleness staleness;
  std::optional<Overlap> overlap;
  Verdict verdict;
};
// ConfigError for unknown names (near ones named) and for sizes that streams cannot have.
std::vector<Outcome> run_strategies(const StrategyOptions& options);

// "bytes", "weight_sum", "checksum", "recall", and "staleness" where there is a bound.
Verdict judge(const Counts& counts, const Monitor& monitor, const Staleness& staleness,
              bool incremental, const std::vector<std::vector<double>>& recalls);

std::vector<Record> records_of(const StrategyOptions& options,
                               const std::vector<Outcome>& outcomes);

// Shares and means that the records and tables show.
double pools_share(const Outcome& outcome);         // pooled, of what the form pools without
double weight_entropy(const Monitor& monitor);      // 1: a mean
double hit_rate(const Monitor& monitor);            // article B wants more than 0.85
double latency_per_step_s(const Monitor& monitor);  // article B wants less than 5 ms
double read_per_step(const Counts& counts, const Monitor& monitor);
inline constexpr double published_hit_rate = 0.85, published_latency_s = 5e-3;

}  // namespace indexpool::verify::strategies
