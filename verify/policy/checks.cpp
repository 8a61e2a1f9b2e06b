#include "indexpool/verify/policy/checks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/judging.hpp"

namespace indexpool::verify::policy {
namespace {

std::string weight_name(const PoolingInputs& inputs, std::size_t index) {
  const auto flat = static_cast<std::int64_t>(index), m = inputs.index_kpool;
  if (!inputs.per_channel()) return fmt::format("set {}, vector {}", flat / m, flat % m);
  const std::int64_t dim = inputs.head_dim;
  return fmt::format("group {}, vector {}, channel {}", flat / dim / m, flat / dim % m, flat % dim);
}

Check skipped(std::string name, std::string_view reason) {
  Check check;
  check.name = std::move(name);
  check.status = Status::skipped;
  check.reason = reason;
  return check;
}

// Relative rounding of the pooled value: products, sums on both sides, quotient, and a weight's own
// error on either side.
double sum_error(const PoolingInputs& inputs) {
  const double n = static_cast<double>(inputs.index_kpool);
  return (4 * n + 16) * 0x1p-24;
}

reference::Range range_of_vectors(const PoolingInputs& inputs, const VectorGroup& group,
                                  std::int64_t channel) {
  reference::Range range{HUGE_VAL, -HUGE_VAL};
  for (std::size_t i = static_cast<std::size_t>(group.absent); i < inputs.offsets.size(); ++i) {
    const std::int64_t row = group.first_row + inputs.offsets[i];
    const double x = inputs.vectors.at(row * inputs.head_dim + channel);
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
  }
  const double error = sum_error(inputs) * std::max(std::abs(range.low), std::abs(range.high)) +
                       static_cast<double>(inputs.index_kpool) * 0x1p-148;
  return {range.low - error, range.high + error};
}

}  // namespace

Check folded(std::string name, const std::vector<Check>& checks) {
  Check all = checks.front();
  for (std::size_t i = 1; i < checks.size(); ++i) all = merge(std::move(all), checks[i]);
  all.name = std::move(name);
  all.utilisation = 0;
  return all;
}

IndexerInputs as_pools(const PoolingInputs& inputs) {
  IndexerInputs pools;
  pools.config.index_kpool = 1;
  pools.config.index_n_heads = 1;
  pools.config.index_head_dim = inputs.head_dim;
  pools.mode = inputs.mode;
  pools.sequences = {{0, inputs.group_count(), 0}};
  return pools;
}

StoredPools stored_pools(const PoolingInputs& inputs, const PooledOutput& output) {
  StoredPools stored;
  stored.pools = inputs.group_count();
  stored.head_dim = inputs.head_dim;
  stored.codes = decode(inputs.mode.cache, output.pooled);
  stored.scales.assign(output.scales.begin(), output.scales.end());
  if (!inputs.mode.quantised()) stored.scales.assign(static_cast<std::size_t>(stored.pools), 1);
  const std::size_t row = static_cast<std::size_t>(inputs.head_dim) *
                          static_cast<std::size_t>(info(inputs.mode.cache).bytes);
  for (std::size_t g = 0; g < inputs.groups.size(); ++g) {
    const auto codes = std::span(output.pooled).subspan(g * row, row);
    std::vector<std::byte> raw(codes.begin(), codes.end());
    if (inputs.mode.quantised()) {
      const auto scale = std::as_bytes(std::span(&output.scales[g], 1));
      raw.insert(raw.end(), scale.begin(), scale.end());
    }
    stored.raw.push_back(std::move(raw));
  }
  return stored;
}

double wide_utilisation(const StoredPools& stored, const reference::Bounded& expected) {
  constexpr double few = 8 * 0x1p-23;  // at least 8 numbers apart
  double worst = 0;
  for (std::size_t i = 0; i < stored.codes.size(); ++i) {
    const double value = expected.value[i], low = expected.low[i], high = expected.high[i];
    if (high - low <= few * std::abs(value)) continue;
    worst = std::max(worst, utilisation(stored.codes[i], value, low, high));
  }
  return worst;
}

reference::Pooled as_reference(const reference::PolicyPooled& expected) {
  reference::Pooled pooled;
  pooled.exact = expected.exact;
  pooled.pooled = pooled.rotated = expected.pooled;
  pooled.pool_weight_sum = expected.weight_sum;
  const auto groups = static_cast<std::int64_t>(expected.fallback.size());
  pooled.first_pool = {0, groups};
  return pooled;
}

Check check_weights(const PoolingInputs& inputs, std::span<const float> pool_weights,
                    const reference::Bounded& expected) {
  Tally tally("bound");
  std::int64_t open = 0;
  for (std::size_t i = 0; i < pool_weights.size(); ++i) {
    const double found = pool_weights[i], low = expected.low[i], high = expected.high[i];
    if (reference::is_open(low, high)) ++open;
    tally.compare(reference::admits(low, high, found),
                  utilisation(found, expected.value[i], low, high), [&] {
                    return fmt::format("{}: {:.9g}, expected {:.9g} to {:.9g}",
                                       weight_name(inputs, i), found, low, high);
                  });
  }
  const std::string vacuous = why_vacuous(expected, inputs.index_kpool, {}, "rows of weights");
  if (!vacuous.empty()) tally.distrust(vacuous);
  tally.excuse(open);
  return std::move(tally).finish();
}

Check check_weight_range(const PoolingInputs& inputs, std::span<const float> pool_weights,
                         const reference::Bounded& expected) {
  const PolicyInfo& policy = find_policy(inputs.policy);
  if (!policy.convex && policy.name != "csa") return skipped("weight_range", policy.exception);
  const bool probabilities = policy.normalisation == Normalisation::softmax;
  Tally tally("weight_range");
  for (std::size_t i = 0; i < pool_weights.size(); ++i) {
    const float w = pool_weights[i];
    if (reference::is_open(expected.low[i], expected.high[i])) continue;
    const bool held = std::isfinite(w) && w >= 0 && (!probabilities || w <= 1);
    tally.compare(held, [&] {
      return fmt::format("{}: {:.9g}, expected {}", weight_name(inputs, i), w,
                         probabilities ? "0 to 1" : "a number from 0 on");
    });
  }
  return std::move(tally).finish();
}

Check check_fallbacks(const PoolingInputs& inputs, std::span<const std::int32_t> found,
                      const reference::PolicyPooled& expected) {
  if (find_policy(inputs.policy).normalisation != Normalisation::division)
    return skipped("fallback", "nothing is divided");
  Tally tally("fallback");
  for (std::size_t g = 0; g < found.size(); ++g) {
    const char wanted = expected.fallback[g];
    tally.compare(wanted == 2 ? found[g] == 0 || found[g] == 1 : found[g] == wanted, [&] {
      return fmt::format("group {}: {}, expected {}", g, found[g], static_cast<int>(wanted));
    });
  }
  return std::move(tally).finish();
}

Check check_convexity(const PoolingInputs& inputs, const StoredPools& stored,
                      const reference::Bounded& expected) {
  const PolicyInfo& policy = find_policy(inputs.policy);
  if (!policy.convex) return skipped("convexity", policy.exception);
  Tally tally("convexity");
  const std::int64_t dim = inputs.head_dim;
  for (std::size_t g = 0; g < inputs.groups.size(); ++g) {
    if (!std::isfinite(stored.scales[g])) continue;  // "scale" judges it
    for (std::int64_t c = 0; c < dim; ++c) {
      const auto at = g * static_cast<std::size_t>(dim) + static_cast<std::size_t>(c);
      if (reference::is_open(expected.low[at], expected.high[at])) continue;
      const reference::Range range = range_of_vectors(inputs, inputs.groups[g], c);
      const double code = stored.codes[at];
      const reference::Range codes =
          inputs.mode.quantised()
              ? reference::code_enclosure(range.low, range.high, stored.scales[g], inputs.mode)
              : reference::Range{round_to(inputs.mode.cache, range.low),
                                 round_to(inputs.mode.cache, range.high)};
      tally.compare(code >= codes.low && code <= codes.high, [&] {
        return fmt::format("group {}, channel {}: {:.9g} is outside its vectors' {:.9g} to {:.9g}",
                           g, c, code * stored.scales[g], range.low, range.high);
      });
    }
  }
  return std::move(tally).finish();
}

std::vector<char> scalable(const PoolingInputs& inputs, const reference::PolicyPooled& expected) {
  // Squares and sums stay in range, stored values stay normal, scales stay above 1e-4 / 127.
  constexpr double most = 0x1p50, least = 0x1p-50, floor = 2e-4;
  const double limit = inputs.mode.storage == DType::f16 ? 0x1p14 : most;
  const double smallest = inputs.mode.cache == DType::f16 ? 0x1p-13 : least;
  const auto dim = static_cast<std::size_t>(inputs.head_dim);
  std::vector<char> result;
  for (std::size_t g = 0; g < inputs.groups.size(); ++g) {
    const VectorGroup& group = inputs.groups[g];
    double largest = 0, amax = 0;
    bool normal = expected.fallback[g] != 2;
    for (std::size_t i = static_cast<std::size_t>(group.absent); i < inputs.offsets.size(); ++i) {
      const std::int64_t row = group.first_row + inputs.offsets[i];
      for (std::int64_t c = 0; c < inputs.head_dim; ++c) {
        const double x = std::abs(inputs.vectors.at(row * inputs.head_dim + c));
        largest = std::max(largest, x);
        normal = normal && (x == 0 || x > least);
      }
    }
    for (std::size_t c = 0; c < dim; ++c) {
      const double x = std::abs(expected.pooled.value[g * dim + c]);
      amax = std::max(amax, x);
      normal = normal && (inputs.mode.quantised() || x == 0 || x > smallest);
    }
    const bool above = !inputs.mode.quantised() || amax > floor;
    result.push_back(normal && above && std::max(largest, amax) < limit ? 1 : 0);
  }
  return result;
}

PoolingInputs doubled(const PoolingInputs& inputs) {
  PoolingInputs result = inputs;
  result.vectors = inputs.vectors.clone();
  for (std::int64_t i = 0; i < result.vectors.size(); ++i) {
    result.vectors.set(i, 2 * inputs.vectors.at(i));
  }
  return result;
}

Check check_scaling(const PoolingInputs& inputs, const PooledOutput& of_doubled,
                    const reference::PolicyPooled& expected, Mask mine) {
  const PolicyInfo& policy = find_policy(inputs.policy);
  if (!policy.scales) return skipped("scaling", policy.exception);
  StoredPools halved = stored_pools(inputs, of_doubled);
  for (double& value : inputs.mode.quantised() ? halved.scales : halved.codes) value /= 2;
  return folded("scaling",
                pool_value_checks(as_pools(inputs), halved, as_reference(expected), mine));
}

void add_monitoring(const PoolingInputs& inputs, std::span<const float> pool_weights,
                    std::span<const std::int32_t> fallbacks, Record& record) {
  const auto m = static_cast<std::size_t>(inputs.index_kpool);
  const std::size_t channels = inputs.per_channel() ? static_cast<std::size_t>(inputs.head_dim) : 1;
  const bool divides = find_policy(inputs.policy).normalisation == Normalisation::division;
  double entropy = 0, deviation = 0;
  std::size_t rows = 0, negative = 0;
  for (std::size_t first = 0; first + m * channels <= pool_weights.size(); first += m * channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < m; ++i) {
        const double w = pool_weights[first + i * channels + c];
        sum += w;
        magnitude += std::abs(w);
        negative += w < 0 ? 1 : 0;
      }
      for (std::size_t i = 0; i < m && magnitude > 0; ++i) {
        const double p = std::abs(pool_weights[first + i * channels + c]) / magnitude;
        if (p > 0) entropy -= p * std::log2(p);
      }
      if (!divides) deviation = std::max(deviation, std::abs(sum - 1));
      ++rows;
    }
  }
  record.values["weight_entropy_bits"] = rows > 0 ? entropy / static_cast<double>(rows) : 0;
  record.values["weight_sum_deviation"] = deviation;
  record.values["negative_weights"] = static_cast<double>(negative);
  record.values["fallbacks_to_mean"] = static_cast<double>(std::ranges::count(fallbacks, 1));
}

}  // namespace indexpool::verify::policy
