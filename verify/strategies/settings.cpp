#include "indexpool/verify/strategies/settings.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool::verify::strategies {
namespace {

void require_range(const char* what, std::int64_t found, std::int64_t low, std::int64_t high) {
  if (found >= low && found <= high) return;
  throw ConfigError(fmt::format("{}: found {}, expected {} to {}", what, found, low, high));
}

std::vector<Segment> single_tokens(std::int64_t tokens) {
  return segments_of(RatioSettings{1}, tokens);
}

void add_halves(const AdaptiveSettings& settings, std::span<const double> block,
                std::int64_t head_dim, std::int64_t first, std::vector<Segment>& to) {
  constexpr std::int64_t half = adaptive_block / 2;
  for (std::int64_t at = 0; at < adaptive_block; at += half) {
    const auto vectors = block.subspan(static_cast<std::size_t>(at * head_dim),
                                       static_cast<std::size_t>(half * head_dim));
    const bool split = relative_spread(vectors, half, head_dim) >= settings.lively;
    const std::int64_t count = split ? half / 2 : half;
    for (std::int64_t i = 0; i < half; i += count) to.push_back({first + at + i, count});
  }
}

}  // namespace

std::vector<Segment> segments_of(const RatioSettings& settings, std::int64_t tokens) {
  std::vector<Segment> segments;
  for (std::int64_t first = 0; first + settings.vectors <= tokens; first += settings.vectors)
    segments.push_back({first, settings.vectors});
  return segments;
}

std::int64_t slots_of(const RatioSettings& settings, std::int64_t tokens) {
  return (tokens + settings.vectors - 1) / settings.vectors;
}

bool weights_due(const FrequencySettings& settings, std::int64_t step) {
  return settings.steps <= 1 || step % settings.steps == 0;
}

bool shares_layers(const FrequencySettings& settings) { return settings.steps > 0; }

double largest_change(std::span<const double> now, std::span<const double> before) {
  require(now.size() == before.size(), "vectors of one group, then and now");
  double largest = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    largest = std::max(largest, std::abs(now[i] - before[i]));
  return largest;
}

bool must_pool(const IncrementalSettings& settings, std::span<const double> now,
               std::span<const double> pooled_from) {
  return settings.threshold < 0 || largest_change(now, pooled_from) > settings.threshold;
}

double norm_of(std::span<const double> vector) {
  double square = 0;
  for (const double x : vector) square += x * x;
  return std::sqrt(square);
}

DType format_of(const PrecisionSettings& settings, const Segment& segment, std::int64_t tokens,
                double norm, double mean_key_norm) {
  bool wide = true;
  if (settings.rule == PrecisionRule::recent)
    wide = segment.end() > tokens - settings.recent_tokens;
  if (settings.rule == PrecisionRule::norm) wide = norm >= settings.norm_share * mean_key_norm;
  return wide ? settings.wide : settings.narrow;
}

std::int64_t pool_bytes(DType format, std::int64_t head_dim) {
  const std::int64_t scale = info(format).bytes == 1 ? 4 : 0;
  return head_dim * info(format).bytes + scale;
}

bool pooling_off(const ShortSettings& settings, std::int64_t tokens) {
  return tokens < settings.below;
}

void require_edge_length(const EdgeSettings& settings, std::int64_t tokens) {
  if (tokens <= settings.most_tokens) return;
  throw ConfigError(
      fmt::format("edge mode: found {} tokens, expected at most {} (512 K, as article D publishes "
                  "it); take fewer tokens or leave edge mode",
                  tokens, settings.most_tokens));
}

std::vector<double> weights_of_8_bits(std::vector<double> weights) {
  double largest = 0;
  for (const double w : weights) largest = std::max(largest, std::abs(w));
  if (largest == 0) return weights;
  for (double& w : weights) w = i8_from_float(static_cast<float>(w / largest * 127));
  return weights;
}

double relative_spread(std::span<const double> vectors, std::int64_t count, std::int64_t head_dim) {
  double all = 0, apart = 0;
  for (std::int64_t c = 0; c < head_dim; ++c) {
    double mean = 0;
    for (std::int64_t i = 0; i < count; ++i)
      mean += vectors[static_cast<std::size_t>(i * head_dim + c)] / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double v = vectors[static_cast<std::size_t>(i * head_dim + c)];
      all += v * v;
      apart += (v - mean) * (v - mean);
    }
  }
  return all > 0 ? std::sqrt(apart / all) : 0;
}

std::vector<Segment> segments_of(const AdaptiveSettings& settings, std::span<const double> keys,
                                 std::int64_t head_dim, std::int64_t tokens) {
  std::vector<Segment> segments;
  for (std::int64_t first = 0; first + adaptive_block <= tokens; first += adaptive_block) {
    const auto block = keys.subspan(static_cast<std::size_t>(first * head_dim),
                                    static_cast<std::size_t>(adaptive_block * head_dim));
    if (relative_spread(block, adaptive_block, head_dim) <= settings.calm) {
      segments.push_back({first, adaptive_block});
    } else {
      add_halves(settings, block, head_dim, first, segments);
    }
  }
  return segments;
}

void validate(const Settings& settings) {
  require_range("vectors a pool", settings.ratio.vectors, 1, most_pooled_vectors);
  require_range("steps between updates of the weights", settings.frequency.steps, 0, 1 << 20);
  require_range("steps that pools come late", settings.edge.late_steps, 0, 1);
  require_range("recent tokens", settings.precision.recent_tokens, 0,
                std::numeric_limits<std::int64_t>::max());
}

std::vector<Segment> segments_of(const Settings& settings, std::span<const double> keys,
                                 std::int64_t head_dim, std::int64_t tokens) {
  if (pooling_off(settings.shorts, tokens)) return single_tokens(tokens);
  if (settings.adaptive.on) return segments_of(settings.adaptive, keys, head_dim, tokens);
  return segments_of(settings.ratio, tokens);
}

}  // namespace indexpool::verify::strategies
