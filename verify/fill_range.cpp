#include <algorithm>
#include <cmath>
#include <limits>

#include "indexpool/verify/fill.hpp"

namespace indexpool::verify {
namespace {

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Every token of a pool gets the same key, so that the pooled key is that key.
template <class Value>
void set_pool_keys(Draw& draw, const Value& value) {
  set_rows(draw.inputs.keys,
           [&](std::int64_t row, std::int64_t channel) { return value(draw.pool(row), channel); });
}

// Channel of the key whose rotated magnitudes are `first` on the even and `second` on the odd
// channels (Sylvester order: row 1 alternates); without a rotation the two magnitudes themselves.
double two_magnitudes(const Draw& draw, double first, double second, std::int64_t channel) {
  const std::int64_t dim = draw.head_dim();
  if (!draw.inputs.mode.hadamard || !is_power_of_two(dim) || dim < 2) {
    return channel % 2 == 0 ? first : -second;
  }
  const double root = std::sqrt(static_cast<double>(dim));
  if (channel == 0) return (first + second) / 2 * root;
  return channel == 1 ? (first - second) / 2 * root : 0;
}

// The key whose rotated values all have magnitude `amax` (`amax` itself without a rotation). Two
// elements hold it, because one of the storage dtype is not precise enough.
double one_magnitude(const Draw& draw, double amax, std::int64_t channel) {
  const std::int64_t dim = draw.head_dim();
  if (!draw.inputs.mode.hadamard || !is_power_of_two(dim) || dim < 2) {
    return channel % 2 == 0 ? amax : -amax / 2;
  }
  const double target = amax * std::sqrt(static_cast<double>(dim));
  const double main = round_to(draw.inputs.keys.dtype(), target);
  if (channel == 0) return main;
  return channel == 1 ? target - main : 0;
}

}  // namespace

void fill_outlier_channel(Draw& draw) {
  fill_normal(draw);
  Tensor& keys = draw.inputs.keys;
  const std::int64_t outlier = draw.random(choice_stream).integer(0, 0, draw.head_dim() - 1);
  for (std::int64_t i = outlier; i < keys.size(); i += draw.head_dim())
    keys.set(i, 50 * keys.at(i));
}

void fill_massive(Draw& draw) {
  fill_normal(draw);
  Tensor& keys = draw.inputs.keys;
  if (keys.empty()) return;
  const double largest = info(keys.dtype()).largest;
  const std::int64_t where = draw.random(choice_stream).integer(0, 0, keys.size() - 1);
  // Activations 1e5 times the median are reported (Massive Activations in LLMs, 2024).
  keys.set(where, std::min(1e5, largest / 4));
}

void fill_near_overflow(Draw& draw) {
  fill_normal(draw);
  IndexerInputs& inputs = draw.inputs;
  const Random random = draw.random(choice_stream);
  const auto enlarge = [&](Tensor& tensor, std::int64_t first, std::int64_t count) {
    const double largest = info(tensor.dtype()).largest;
    for (std::int64_t i = first; i < std::min(first + count, tensor.size()); ++i) {
      const double share = 1 - static_cast<double>(random.integer(i, 0, 7)) / 16;
      tensor.set(i, std::copysign(largest * share, tensor.at(i)));
    }
  };
  if (inputs.keys.empty()) return;
  // Late ones, so that few rows see the pool. The last query has a neighbour that stays ordinary.
  const std::int64_t row = random.integer(-1, inputs.rows() / 2, inputs.rows() - 1);
  const std::int64_t pool_tokens = inputs.config.index_kpool;
  enlarge(inputs.keys, row * draw.head_dim(), pool_tokens * draw.head_dim());
  const std::int64_t vector = inputs.config.index_n_heads * draw.head_dim();
  enlarge(inputs.queries, (inputs.rows() - 1) * vector, vector);
}

void fill_tiny(Draw& draw) {
  fill_normal(draw);
  Tensor& keys = draw.inputs.keys;
  for (std::int64_t i = 0; i < keys.size(); ++i) keys.set(i, keys.at(i) * 0x1p-20);
}

void fill_subnormal(Draw& draw) {
  fill_normal(draw);
  Tensor& keys = draw.inputs.keys;
  const double step = info(keys.dtype()).smallest_subnormal;
  const Random random = draw.random(keys_stream);
  for (std::int64_t i = 0; i < keys.size(); ++i) {
    keys.set(i, step * static_cast<double>(random.integer(i, -63, 63)));
  }
}

void fill_signed_zeros(Draw& draw) {
  fill_normal(draw);
  const Random random = draw.random(choice_stream);
  const auto thin = [&](Tensor& tensor, std::int64_t salt) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const std::int64_t draw_of_four = random.integer(i * 2 + salt, 0, 3);
      if (draw_of_four == 0) continue;
      tensor.set(i, draw_of_four == 1 ? 0.0 : -0.0);
    }
  };
  thin(draw.inputs.keys, 0);
  thin(draw.inputs.queries, 1);
}

void fill_amax_edge(Draw& draw) {
  fill_normal(draw);
  const double step = 2 * info(draw.inputs.mode.pooled).unit_roundoff;  // of the pooled dtype, at 1
  const double edges[] = {
      448,  448 * (1 + step), 448 * (1 - step), 464, 256, 256 * (1 - step), 127, 0, 1e-4 * 0.5,
      1e-4, 1e-4 * (1 + step)};
  static constexpr int exponents[] = {0, -3, -9, -14};
  set_pool_keys(draw, [&](std::int64_t pool, std::int64_t channel) {
    const auto edge = static_cast<std::size_t>(pool % 11);
    const int exponent = edge < 8 ? exponents[pool / 11 % 4] : 0;
    return one_magnitude(draw, std::ldexp(edges[edge], exponent), channel);
  });
}

void fill_e4m3_midpoints(Draw& draw) {
  fill_normal(draw);
  set_pool_keys(draw, [&](std::int64_t pool, std::int64_t channel) {
    // Codes 0 to 125 have a neighbour above them.
    const auto code = static_cast<std::uint8_t>(pool % 126);
    const double midpoint = (static_cast<double>(float_from_e4m3(code)) +
                             static_cast<double>(float_from_e4m3(code + 1))) /
                            2;
    return two_magnitudes(draw, 448, midpoint, channel);
  });
}

}  // namespace indexpool::verify
