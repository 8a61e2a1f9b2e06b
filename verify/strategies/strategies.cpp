#include "indexpool/verify/strategies/strategies.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::strategies {
namespace {

using reference::training::bootstrap;
using Rows = std::vector<std::vector<double>>;

struct Runs {
  Rows recalls;  // of each sequence
  Counts counts;
  Monitor monitor;
  Staleness staleness;
};

Runs run_all(const Form& form, Settings settings, const Variant& variant,
             const std::vector<Stream>& streams, const StrategyOptions& options,
             PoolingLatency& latency) {
  Runs runs;
  const double threshold = settings.incremental.threshold;
  for (const Stream& stream : streams) {
    if (threshold > 0) settings.incremental.threshold = threshold * stream.key_rms;
    const StreamRun run = simulate(form, settings, variant.stream, stream, latency, options.run);
    runs.recalls.push_back(run.recall);
    runs.counts += run.counts;
    runs.monitor += run.monitor;
    runs.staleness += run.staleness;
  }
  return runs;
}

Rows less(const Rows& a, const Rows& b) {
  Rows difference = a;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) difference[i][j] -= b[i][j];
  return difference;
}

Check check_of(const char* name, std::int64_t compared, std::int64_t violations,
               std::string reason) {
  Check check;
  check.name = name;
  check.compared = compared;
  check.violations = violations;
  if (violations > 0) {
    check.status = Status::failed;
    check.reason = std::move(reason);
  } else if (compared == 0) {
    check.status = Status::untrusted;
    check.reason = fmt::format("{}: there was nothing to compare", name);
  }
  return check;
}

Check recall_check(const Rows& recalls) {
  std::int64_t compared = 0, outside = 0;
  for (const auto& row : recalls) {
    compared += std::ssize(row);
    outside += std::count_if(row.begin(), row.end(),
                             [](double recall) { return !(recall >= 0 && recall <= 1 + 1e-12); });
  }
  return check_of("recall", compared, outside,
                  fmt::format("{} of {} recalls lie outside 0 to 1", outside, compared));
}

// Streams and baselines that several variants of one strategy share.
class Strategist {
 public:
  explicit Strategist(const StrategyOptions& options)
      : options_(options), latency_(load_device(options.device)) {}

  Outcome outcome_of(const StrategyInfo& strategy, const Variant& variant) {
    require_edge_length(variant.settings.edge, variant.stream.tokens);
    const Form form = make_form(variant.policy, variant.by_step, variant.stream);
    if (streams_.empty()) streams_ = make_streams(variant.stream);
    const Runs& baseline = baseline_of(form, variant);
    const Runs runs = run_all(form, variant.settings, variant, streams_, options_, latency_);
    Outcome out;
    out.strategy = strategy.name;
    out.article = strategy.article;
    out.variant = variant;
    out.recall = bootstrap(runs.recalls, options_.seed);
    out.baseline_recall = bootstrap(baseline.recalls, options_.seed);
    out.difference = bootstrap(less(runs.recalls, baseline.recalls), options_.seed);
    out.sequences = std::ssize(streams_);
    out.counts = runs.counts;
    out.baseline = baseline.counts;
    out.monitor = runs.monitor;
    out.baseline_monitor = baseline.monitor;
    out.staleness = runs.staleness;
    out.verdict = judge(runs.counts, runs.monitor, runs.staleness,
                        variant.settings.incremental.threshold >= 0, runs.recalls);
    if (variant.overlap) {
      OverlapOptions overlapped = *variant.overlap;
      overlapped.device = options_.device;
      out.overlap = overlap(overlapped);
    }
    return out;
  }

 private:
  const Runs& baseline_of(const Form& form, const Variant& variant) {
    const std::string key = variant.policy + ", " + variant.beside;
    const auto known = baselines_.find(key);
    if (known != baselines_.end()) return known->second;
    return baselines_
        .emplace(key, run_all(form, variant.baseline, variant, streams_, options_, latency_))
        .first->second;
  }

  const StrategyOptions& options_;
  PoolingLatency latency_;
  std::vector<Stream> streams_;
  std::map<std::string, Runs> baselines_;
};

void require_names(const std::vector<std::string>& names) {
  const std::vector<std::string> known = strategy_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string> near = near_names(name, known);
    throw ConfigError(
        near.empty() ? fmt::format("unknown strategy '{}'. Known: {}", name, fmt::join(known, ", "))
                     : fmt::format("unknown strategy '{}': did you mean {}?", name,
                                   fmt::join(near, " or ")));
  }
}

}  // namespace

Verdict judge(const Counts& counts, const Monitor& monitor, const Staleness& staleness,
              bool incremental, const Rows& recalls) {
  const bool bytes_agree = counts.bytes_stored == counts.bytes_expected;
  std::vector<Check> checks = {
      check_of("bytes", counts.bytes_expected > 0 ? 1 : 0, bytes_agree ? 0 : 1,
               fmt::format("found {} bytes stored, the formula says {}", counts.bytes_stored,
                           counts.bytes_expected)),
      check_of("weight_sum", monitor.sums, monitor.normalisation_violations,
               fmt::format("the weights of {} of {} pools do not sum to 1",
                           monitor.normalisation_violations, monitor.sums)),
      check_of("checksum", monitor.checksums, monitor.checksum_failures,
               fmt::format("{} of {} pools read are not the bytes that were stored",
                           monitor.checksum_failures, monitor.checksums)),
      recall_check(recalls)};
  if (incremental) {
    checks.push_back(check_of("staleness", staleness.compared, staleness.violations,
                              fmt::format("{} of {} channels are further from a fresh pool than "
                                          "the bound",
                                          staleness.violations, staleness.compared)));
    checks.back().utilisation = staleness.utilisation;
  }
  return assemble(std::move(checks));
}

std::vector<Outcome> run_strategies(const StrategyOptions& options) {
  require_names(options.names);
  StreamOptions stream;
  stream.seed = options.seed;
  stream.tokens = options.tokens;
  stream.sequences = options.sequences;
  stream.steps = options.steps;
  validate(stream);
  std::vector<Outcome> outcomes;
  for (const StrategyInfo& strategy : strategies()) {
    const auto& names = options.names;
    if (!names.empty() && std::find(names.begin(), names.end(), strategy.name) == names.end())
      continue;
    Strategist strategist(options);
    for (const Variant& variant : strategy.variants(stream)) {
      if (options.progress) options.progress(fmt::format("{}: {}", strategy.name, variant.name));
      outcomes.push_back(strategist.outcome_of(strategy, variant));
    }
  }
  return outcomes;
}

}  // namespace indexpool::verify::strategies
