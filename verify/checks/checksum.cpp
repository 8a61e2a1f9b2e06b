// Sums that a pool carries with it: a linear pair taken before rounding and an exact pair over what
// is stored (Huang and Abraham's row checksum, with a second, weighted vector that sees
// permutations).
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/exact_sums.hpp"
#include "indexpool/verify/checks/rounding.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

// Interval of a sum in binary32: the ends of the terms, and gamma_n times the largest magnitudes.
// n: roundings that a term goes through.
struct Interval {
  double value = 0, low = 0, high = 0, magnitude = 0;
  void add(double v, double l, double h) {
    value += v, low += l, high += h;
    magnitude += std::max(std::abs(l), std::abs(h));
  }
  void widen(double roundings, double floor) {
    const double error = gamma(roundings) * magnitude + floor;
    low -= error, high += error;
    constexpr double overflow = 0x1p128 * (1 - 0x1p-8);
    if (!(magnitude < overflow)) low = -HUGE_VAL, high = HUGE_VAL;
  }
};

void compare(const Interval& expected, float found, const char* name, const std::string& pool,
             Tally& tally) {
  const double x = found;
  tally.compare(reference::admits(expected.low, expected.high, x),
                utilisation(x, expected.value, expected.low, expected.high), [&] {
                  return fmt::format("{}: {} {:.9g}, expected {:.9g} to {:.9g}", pool, name, x,
                                     expected.low, expected.high);
                });
}

// The two sums over the channels of one pool.
struct Pair {
  Interval sum, weighted;
};
Pair sums_of(const reference::Bounded& bounds, std::int64_t pool, std::int64_t dim) {
  Pair pair;
  for (std::int64_t c = 0; c < dim; ++c) {
    const auto i = static_cast<std::size_t>(pool * dim + c);
    const double position = static_cast<double>(c + 1) / static_cast<double>(dim);
    pair.sum.add(bounds.value[i], bounds.low[i], bounds.high[i]);
    pair.weighted.add(position * bounds.value[i], position * bounds.low[i],
                      position * bounds.high[i]);
  }
  // A product and a rounded position more for the weighted sum. The floor is half the subnormal
  // spacing for each operation.
  const double floor = static_cast<double>(dim) * 0x1p-150;
  pair.sum.widen(sum_depth(dim), floor);
  pair.weighted.widen(sum_depth(dim) + 2, 2 * floor);
  return pair;
}

// The exact pair; none with a NaN code, which has no integer.
std::optional<ExactPair> exact_sums(const StoredPools& stored, std::int64_t pool,
                                    const NumericMode& mode) {
  const auto& raw = stored.raw[static_cast<std::size_t>(pool)];
  if (!mode.quantised()) return pair_of_elements(mode.cache, raw);
  ExactPair pair;
  std::uint32_t scale_bits = 0;
  std::memcpy(&scale_bits, raw.data() + raw.size() - sizeof(scale_bits), sizeof(scale_bits));
  pair.sum = scale_term(scale_bits);
  const double step = info(mode.cache).is_float ? info(mode.cache).smallest_subnormal : 1;
  const auto weights = code_weights(stored.head_dim);
  const auto* code = stored.codes.data() + pool * stored.head_dim;
  for (const std::uint32_t weight : weights) {
    const double steps = *code++ / step;
    if (!std::isfinite(steps)) return std::nullopt;
    const auto units = static_cast<std::uint32_t>(static_cast<std::int64_t>(steps));
    pair.sum += units;
    pair.weighted += weight * units;
  }
  return pair;
}

}  // namespace

reference::Bounded mean_before_rounding(const IndexerInputs& inputs) {
  // The mode with an output dtype that keeps what the kernel's f32 result holds, and no rotation.
  IndexerInputs plain = inputs;
  plain.mode.pooled = DType::f32;
  plain.mode.cache = DType::f32;
  plain.mode.hadamard = false;
  plain.mode.scale = ScaleRule::none;
  return reference::pool(plain).pooled;
}

Check check_checksum(const IndexerInputs& inputs, const StoredPools& stored,
                     std::span<const kernels::PoolChecksum> checksums,
                     const reference::Bounded& unrounded, Mask mine) {
  Tally tally("checksum");
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    if (mine[static_cast<std::size_t>(pool)] == 0) continue;
    const kernels::PoolChecksum& found = checksums[static_cast<std::size_t>(pool)];
    const std::string name = pool_name(inputs, pool);
    const Pair expected = sums_of(unrounded, pool, stored.head_dim);
    compare(expected.sum, found.sum, "sum", name, tally);
    compare(expected.weighted, found.weighted_sum, "weighted sum", name, tally);
    const auto exact = exact_sums(stored, pool, inputs.mode);
    if (!exact) continue;  // "quantiser" says whether a NaN code may be
    tally.compare(found.exact_sum == exact->sum, [&] {
      return fmt::format("{}: exact sum {}, what is stored gives {}", name, found.exact_sum,
                         exact->sum);
    });
    tally.compare(found.exact_weighted_sum == exact->weighted, [&] {
      return fmt::format("{}: weighted exact sum {}, what is stored gives {}", name,
                         found.exact_weighted_sum, exact->weighted);
    });
  }
  return std::move(tally).finish();
}

Check check_weight_sum(const IndexerInputs& ones, const StoredPools& stored,
                       std::span<const kernels::PoolChecksum> checksums,
                       const reference::Pooled& expected, Mask mine) {
  Tally tally("weight_sum");
  const auto dim = static_cast<double>(stored.head_dim);
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    const auto p = static_cast<std::size_t>(pool);
    if (mine[p] == 0) continue;
    // Every channel of the mean is the sum of its weights.
    const double deviation = std::max(std::abs(expected.pool_weight_sum.low[p]),
                                      std::abs(expected.pool_weight_sum.high[p]));
    Interval sum{dim, dim * (1 - deviation), dim * (1 + deviation), dim * (1 + deviation)};
    sum.widen(sum_depth(stored.head_dim), 0);
    const double half = (dim + 1) / 2;
    Interval weighted{half, half * (1 - deviation), half * (1 + deviation), half * (1 + deviation)};
    weighted.widen(sum_depth(stored.head_dim) + 2, 0);
    const std::string name = pool_name(ones, pool) + ", all keys 1";
    compare(sum, checksums[p].sum, "sum of the weights", name, tally);
    compare(weighted, checksums[p].weighted_sum, "weighted sum of the weights", name, tally);
  }
  Check values = ones.mode.quantised() ? check_pool_quantiser(ones, stored, expected, mine)
                                       : check_pool_bound(ones, stored, expected, mine);
  values.utilisation = 0;  // the sums' is the one that means something
  return merge(std::move(tally).finish(), values);
}

}  // namespace indexpool::verify
