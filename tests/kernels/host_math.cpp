#include "host_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

// Fast Walsh-Hadamard transform in natural order, then D^-0.5, each step rounded to f32.
Head rotated(Head x) {
  const std::size_t size = x.size();
  for (std::size_t stride = 1; stride < size; stride *= 2)
    for (std::size_t i = 0; i < size; ++i) {
      if (i / stride % 2 != 0) continue;
      const float a = x[i], b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  for (float& value : x) value *= factor;
  return x;
}

float host_scale(const NumericMode& mode, float amax) {
  const float floored = std::max(amax, 1e-4f);
  const double largest = mode.cache == DType::i8 ? 127 : 448;
  if (mode.scale == ScaleRule::amax)
    return static_cast<float>(static_cast<double>(floored) / largest);  // 53 bits suffice for one /
  float scale = 1;  // the smallest power of two that is at least amax / 448
  while (static_cast<double>(scale) * largest < static_cast<double>(floored)) scale *= 2;
  while (static_cast<double>(scale) / 2 * largest >= static_cast<double>(floored)) scale /= 2;
  return scale;
}

// Pairwise: eight neighbours in order, then halves.
template <class T, class F>
T tree_sum(std::vector<T> values, F add) {
  std::vector<T> partial;
  for (std::size_t i = 0; i < values.size(); i += 8) {
    T sum = 0;
    for (std::size_t j = i; j < i + 8; ++j) sum = add(sum, j);
    partial.push_back(sum);
  }
  while (partial.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i < partial.size(); i += 2) next.push_back(partial[i] + partial[i + 1]);
    partial = next;
  }
  return partial[0];
}

// m and h of PoolChecksum, as args.hpp writes them.
std::uint32_t m(std::uint32_t word) {
  word ^= word >> 16;
  word *= 0x85ebca6bu;
  word ^= word >> 13;
  word *= 0xc2b2ae35u;
  return word ^ (word >> 16);
}
std::uint32_t h(std::size_t channel) {
  const auto i = static_cast<std::uint32_t>(channel % 8),
             l = static_cast<std::uint32_t>(channel / 8);
  return (16 * m(i) + 2 * i + 1) * (4096 * m(l) + 16 * l + 1);
}

// The elements' bits turned left by one, as one number or as halves.
void add_elements(DType cache, const HostPool& pool, PoolChecksum& sums) {
  const auto bytes = static_cast<std::size_t>(info(cache).bytes);
  const std::size_t channels = pool.stored.size() / bytes;
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, pool.stored.data() + c * bytes, bytes);
    const std::uint64_t sign = bits >> (8 * bytes - 1);
    const auto turned = static_cast<std::uint32_t>(2 * bits - (sign << (8 * bytes)) + sign);
    const std::uint32_t low = turned & 0xffff, high = turned >> 16;  // 16 bits: all of it is low
    const auto k = cache == DType::f32 ? static_cast<std::uint32_t>(2 * channels + 1) : 1;
    sums.exact_sum += low + high;
    sums.exact_weighted_sum += h(c) * (high + k * low);
  }
}

PoolChecksum checksum_of(const NumericMode& mode, const HostPool& pool) {
  const auto size = static_cast<float>(pool.y.size());
  PoolChecksum sums{};
  sums.sum = tree_sum(pool.y, [&](float sum, std::size_t c) { return sum + pool.y[c]; });
  sums.weighted_sum = tree_sum(pool.y, [&](float sum, std::size_t c) {
    return std::fma(static_cast<float>(c + 1) / size, pool.y[c], sum);
  });
  if (!mode.quantised()) {
    add_elements(mode.cache, pool, sums);
    return sums;
  }
  std::uint32_t scale_bits = 0;
  std::memcpy(&scale_bits, &pool.scale, sizeof scale_bits);
  sums.exact_sum = m(scale_bits);
  const double step = mode.cache == DType::e4m3 ? 0x1p-9 : 1;
  for (std::size_t c = 0; c < pool.stored.size(); ++c) {
    const auto* bytes = reinterpret_cast<const std::byte*>(pool.stored.data());
    const double value = load_element(mode.cache, bytes, static_cast<std::int64_t>(c));
    const auto units = static_cast<std::uint32_t>(static_cast<std::int32_t>(value / step));
    sums.exact_sum += units;
    sums.exact_weighted_sum += h(c) * units;
  }
  return sums;
}

void finish(const NumericMode& mode, Head x, HostPool& pool) {
  if (mode.hadamard) x = rotated(x);
  for (float& value : x) value = host_round(mode.pooled, value);
  if (!mode.quantised()) {
    pool.stored = host_store(mode.cache, x);
    return;
  }
  float amax = 0;
  for (const float value : x) amax = std::max(amax, std::abs(value));
  pool.scale = host_scale(mode, amax);
  for (const float value : x) {
    const float scaled = value / pool.scale;
    pool.stored.push_back(mode.cache == DType::e4m3
                              ? e4m3_from_float(scaled)
                              : static_cast<std::uint8_t>(i8_from_float(scaled)));
  }
}

}  // namespace

float host_round(DType dtype, float value) {
  return static_cast<float>(round_to(dtype, static_cast<double>(value)));
}

std::vector<std::uint8_t> host_store(DType dtype, const Head& head) {
  std::vector<std::uint8_t> bytes(head.size() * static_cast<std::size_t>(info(dtype).bytes));
  for (std::size_t i = 0; i < head.size(); ++i)
    store_element(dtype, reinterpret_cast<std::byte*>(bytes.data()), static_cast<std::int64_t>(i),
                  static_cast<double>(head[i]));
  return bytes;
}

HostPool host_pool(const NumericMode& mode, const std::vector<Head>& keys,
                   const std::vector<Head>& gate_scores, const std::vector<Head>& ape) {
  const std::size_t tokens = keys.size(), channels = keys[0].size();
  HostPool pool;
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<float> e(tokens);
    float largest = -INFINITY, denominator = 0, sum = 0;
    for (std::size_t j = 0; j < tokens; ++j)
      largest = std::max(largest, gate_scores[j][c] + ape[j][c]);
    for (std::size_t j = 0; j < tokens; ++j) {
      e[j] = simt::exp_f32(gate_scores[j][c] + ape[j][c] - largest);
      denominator += e[j];
    }
    for (std::size_t j = 0; j < tokens; ++j) {
      if (mode.pool_rounding == PoolRounding::f32_accumulate) {
        sum = std::fma(e[j], keys[j][c], sum);
      } else {
        const float weight = host_round(mode.storage, e[j] / denominator);
        sum += host_round(mode.storage, weight * keys[j][c]);
      }
    }
    pool.y.push_back(mode.pool_rounding == PoolRounding::f32_accumulate ? sum / denominator : sum);
  }
  Head pooled = pool.y;
  for (float& value : pooled) value = host_round(mode.pooled, value);
  finish(mode, pooled, pool);
  pool.checksum = checksum_of(mode, pool);
  return pool;
}

HostPool host_quantise_query(const NumericMode& mode, const Head& query) {
  HostPool result;
  finish(mode, query, result);
  return result;
}

}  // namespace indexpool::kernels
