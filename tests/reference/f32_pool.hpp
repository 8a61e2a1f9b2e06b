// Straightforward binary32 pooling, as kernels write it, in several orders and with several
// exponentials; and the same with planted mistakes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/dtype.hpp"

namespace indexpool::reference {

struct PoolProgram {
  std::string name;
  // Scores (gate + bias, binary32) and keys of one channel to the pooled value, before rounding.
  std::function<float(std::span<const float>, std::span<const float>)> run;
};

inline float maximum(std::span<const float> z) { return *std::ranges::max_element(z); }

using Exponential = std::function<float(float)>;

// `exponential` off by up to 2 ulp, at random.
inline Exponential sloppy(std::uint64_t seed) {
  return [random = std::mt19937_64(seed)](float x) mutable {
    float result = std::exp(x);
    const int steps = static_cast<int>(random() % 5) - 2;
    for (int i = 0; i < std::abs(steps); ++i) {
      result = std::nextafter(result, steps > 0 ? HUGE_VALF : 0.0F);
    }
    return result < 0x1p-126F ? 0.0F : result;  // flushes, as ex2.approx.ftz does
  };
}

inline float two_passes(std::span<const float> z, std::span<const float> v,
                        const Exponential& exponential, bool reverse, bool fused, bool reciprocal) {
  const float m = maximum(z);
  float sum = 0, total = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::size_t j = reverse ? z.size() - 1 - i : i;
    const float w = exponential(z[j] - m);
    sum = fused ? std::fma(w, v[j], sum) : sum + w * v[j];
    total += w;
  }
  return reciprocal ? sum * (1 / total) : sum / total;
}

inline float tree(std::span<const float> z, std::span<const float> v) {
  const float m = maximum(z);
  std::vector<float> sums, totals;
  for (std::size_t j = 0; j < z.size(); ++j) {
    totals.push_back(std::exp(z[j] - m));
    sums.push_back(totals.back() * v[j]);
  }
  for (std::size_t stride = 1; stride < z.size(); stride *= 2) {
    for (std::size_t j = 0; j + stride < z.size(); j += 2 * stride) {
      sums[j] += sums[j + stride];
      totals[j] += totals[j + stride];
    }
  }
  return sums[0] / totals[0];
}

// Running maximum, both sums rescaled when it grows.
inline float online(std::span<const float> z, std::span<const float> v,
                    const Exponential& exponential) {
  float m = z[0], sum = v[0], total = 1;
  for (std::size_t j = 1; j < z.size(); ++j) {
    const float larger = std::max(m, z[j]);
    if (larger == -HUGE_VALF) {
      sum = v[j];
      continue;
    }
    const float rescale = exponential(m - larger), w = exponential(z[j] - larger);
    sum = sum * rescale + w * v[j];
    total = total * rescale + w;
    m = larger;
  }
  return sum / total;
}

inline std::vector<PoolProgram> correct_programs(std::uint64_t seed) {
  const Exponential library = [](float x) { return std::exp(x); };
  const Exponential base2 = [](float x) { return std::exp2(x * 1.44269504F); };
  const auto passes = [](const Exponential& e, bool reverse, bool fused, bool reciprocal) {
    return [=](auto z, auto v) { return two_passes(z, v, e, reverse, fused, reciprocal); };
  };
  return {{"forward, expf", passes(library, false, false, false)},
          {"reverse, expf, fma", passes(library, true, true, false)},
          {"forward, exp2f, fma, reciprocal", passes(base2, false, true, true)},
          {"forward, exp off by 2 ulp and flushed", passes(sloppy(seed), false, true, true)},
          {"reverse, exp off by 2 ulp and flushed", passes(sloppy(seed + 1), true, false, false)},
          {"tree", tree},
          {"running maximum", [=](auto z, auto v) { return online(z, v, library); }},
          {"running maximum, exp off by 2 ulp",
           [e = sloppy(seed + 2)](auto z, auto v) { return online(z, v, e); }}};
}

inline float rounded_bf16(float x) { return float_from_bf16(bf16_from_float(x)); }

inline std::vector<PoolProgram> wrong_programs() {
  const auto plain = [](std::span<const float> z, std::span<const float> v, float shift,
                        std::size_t denominator_terms, bool narrow) {
    float sum = 0, total = 0;
    for (std::size_t j = 0; j < z.size(); ++j) {
      const float w = std::exp(z[j] - shift);
      sum += w * v[j];
      if (narrow) sum = rounded_bf16(sum);
      if (j < denominator_terms) total += w;
    }
    return sum / total;
  };
  return {
      {"no shift by the maximum", [=](auto z, auto v) { return plain(z, v, 0, z.size(), false); }},
      {"denominator drops a term",
       [=](auto z, auto v) { return plain(z, v, maximum(z), z.size() - 1, false); }},
      {"bf16 accumulator", [=](auto z, auto v) { return plain(z, v, maximum(z), z.size(), true); }},
      {"mean instead of softmax", [](auto z, auto v) {
         float sum = 0;
         for (const float x : v) sum += x;
         return sum / static_cast<float>(z.size());
       }}};
}

}  // namespace indexpool::reference
