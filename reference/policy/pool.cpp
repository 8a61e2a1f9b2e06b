// Pooled vectors of the published forms, from stored pool weights.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/policy/norm_rope.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/policy/set_weights.hpp"
#include "indexpool/reference/policy/store.hpp"
#include "indexpool/reference/policy/weighted_sum.hpp"

namespace indexpool::reference {
namespace {

inline constexpr Format f32_format{24, -126, 0x1.fffffep127, false};

// Weights so short that their products with 16-bit vectors may add up without rounding.
template <class T>
bool are_short(std::span<const Ball<T>> pool_weights) {
  return std::ranges::all_of(pool_weights, [](const Ball<T>& w) {
    const double x = to_double(w.value);
    return x == 0 || std::ilogb(x) - lowest_bit(x) < 16;
  });
}

// One group: weights and vectors of those that are present, [n] or [n, D] and [n, D].
template <class T>
struct Group {
  std::vector<Ball<T>> pool_weights;
  std::vector<double> vectors;
  std::size_t count = 0, dim = 0;
  bool per_channel = false, divide = false;
  Denominator<T> denominator;
  bool short_weights = false;

  // Before the last rounding to binary32, of `value(i)` instead of the vectors.
  template <class Value>
  Ball<T> pooled(std::size_t channel, const Value& value, Arithmetic arithmetic) const {
    const auto weight = [&](std::size_t i) -> const Ball<T>& {
      return pool_weights[per_channel ? i * dim + channel : i];
    };
    const auto sums = sums_of<T>(count, weight, value);
    if (divide) return divided(sums, count, denominator, arithmetic);
    if (short_weights && adds_exactly(sums, count, weight, value)) return sums.sum;
    return before_last_rounding(sums, arithmetic);
  }
  Ball<T> pooled(std::size_t channel, Arithmetic arithmetic) const {
    return pooled(
        channel, [&](std::size_t i) { return vectors[i * dim + channel]; }, arithmetic);
  }
  // What vectors of ones would show, minus 1, as a number that is not rounded again; of all
  // channels the hull.
  Enclosed<T> weight_sum(Arithmetic arithmetic) const {
    using std::abs;
    Enclosed<T> hull;
    for (std::size_t c = 0; c < (per_channel ? dim : 1); ++c) {
      const auto ones = [](std::size_t) { return 1.0; };
      const Ball<T> sum = rounded(pooled(c, ones, arithmetic), arithmetic, 1);
      const T apart = sum.value - 1, low = sum.low() - 1, high = sum.high() - 1;
      if (c == 0 || abs(apart) > abs(hull.value)) hull.value = apart;
      hull.low = c == 0 ? low : std::min(hull.low, low);
      hull.high = c == 0 ? high : std::max(hull.high, high);
    }
    return hull;
  }
};

template <class T>
class Pooling {
 public:
  Pooling(const PoolingInputs& inputs, std::span<const float> stored)
      : in_(inputs),
        stored_(stored),
        divide_(find_policy(inputs.policy).normalisation == Normalisation::division) {}

  void group(std::int64_t g, PolicyPooled& result) const {
    const auto vectors = gather(in_, in_.vectors, g);
    const auto at = static_cast<std::size_t>(g), first = at * static_cast<std::size_t>(dim());
    store_exact(
        pooled(group_of(g, set_weights<T>(in_, set(g), exactly), vectors, exactly), g, exactly),
        first, result.exact);
    const auto faithful = group_of(g, stored_weights(g), vectors, in_binary32);
    result.fallback[at] = faithful.denominator.fallback;
    store(result.weight_sum, at, faithful.weight_sum(in_binary32));
    const auto channels = pooled(faithful, g, in_binary32);
    const Format storage = format_of(in_.mode.pooled);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const auto f32 = rounded_once(channels[c], f32_format);
      store(result.before, first + c, f32);
      store(result.pooled, first + c, channels[c].open() ? f32 : round_to_format(f32, storage));
    }
  }

 private:
  std::int64_t dim() const { return in_.head_dim; }
  // Row of the pool weights that belongs to a group.
  std::int64_t set(std::int64_t g) const {
    return in_.per_channel() ? g : in_.groups[static_cast<std::size_t>(g)].weight_set;
  }

  // [m] or [m, D]. A kernel's weights may be anything: what is not a number leaves its sums open.
  std::vector<Ball<T>> stored_weights(std::int64_t g) const {
    const auto size = static_cast<std::size_t>(in_.index_kpool * (in_.per_channel() ? dim() : 1));
    std::vector<Ball<T>> result;
    result.reserve(size);
    for (const float w : stored_.subspan(static_cast<std::size_t>(set(g)) * size, size)) {
      result.push_back(std::isfinite(w) ? Ball<T>{T(w), T(0)} : open_ball(T(0)));
    }
    return result;
  }

  Group<T> group_of(std::int64_t g, std::vector<Ball<T>> all_weights,
                    const std::vector<double>& vectors, Arithmetic arithmetic) const {
    Group<T> group;
    group.dim = static_cast<std::size_t>(dim());
    group.count = static_cast<std::size_t>(present(in_, g));
    group.per_channel = in_.per_channel();
    group.divide = divide_;
    const std::size_t used = group.count * (group.per_channel ? group.dim : 1);
    group.pool_weights.assign(all_weights.end() - static_cast<std::ptrdiff_t>(used),
                              all_weights.end());
    group.vectors = vectors;
    if (divide_) group.denominator = denominator_of<T>(group.pool_weights, arithmetic);
    group.short_weights = arithmetic.rounds && !divide_ && !in_.per_channel() &&
                          in_.mode.storage != DType::f32 && are_short<T>(group.pool_weights);
    return group;
  }

  std::vector<Ball<T>> pooled(const Group<T>& group, std::int64_t g, Arithmetic arithmetic) const {
    std::vector<Ball<T>> result(group.dim);
    for (std::size_t c = 0; c < group.dim; ++c) result[c] = group.pooled(c, arithmetic);
    if (in_.norm_rope.norm_weight.empty()) return result;
    for (Ball<T>& x : result) x = rounded(x, arithmetic, 1);
    norm_and_rotate(result, in_.norm_rope, g, arithmetic);
    return result;
  }

  static void store_exact(const std::vector<Ball<T>>& channels, std::size_t first,
                          Bounded& target) {
    for (std::size_t c = 0; c < channels.size(); ++c) store(target, first + c, channels[c]);
  }

  const PoolingInputs& in_;
  std::span<const float> stored_;
  bool divide_;
};

template <class T>
PolicyPooled pool_in(const PoolingInputs& inputs, std::span<const float> stored_weights) {
  const std::int64_t groups = inputs.group_count();
  PolicyPooled result;
  result.exact = result.before = result.pooled = Bounded(Shape{groups, inputs.head_dim});
  result.weight_sum = Bounded(Shape{groups});
  result.fallback.resize(static_cast<std::size_t>(groups));
  const Pooling<T> pooling(inputs, stored_weights);
  for (std::int64_t g = 0; g < groups; ++g) pooling.group(g, result);
  return result;
}

}  // namespace

PolicyPooled pool(const PoolingInputs& inputs, std::span<const float> stored_weights,
                  Precision precision) {
  check_operands(inputs);
  const std::int64_t expected = element_count(pool_weight_shape(inputs));
  if (static_cast<std::int64_t>(stored_weights.size()) != expected) {
    throw ConfigError(fmt::format("stored pool weights: found {}, expected {} ({})",
                                  stored_weights.size(), expected,
                                  to_string(pool_weight_shape(inputs))));
  }
  return precision == Precision::binary64 ? pool_in<double>(inputs, stored_weights)
                                          : pool_in<Quad>(inputs, stored_weights);
}

}  // namespace indexpool::reference
