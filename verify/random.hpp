// Counter-based random numbers: a value is a function of (seed, stream, index) and of nothing else,
// so the same bytes come out on any machine, in any order, on any number of threads.
#pragma once

#include <cstdint>

namespace indexpool::verify {

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed) ^ stream)) {}

  constexpr std::uint64_t bits(std::int64_t index) const {
    return mix(key_ ^ mix(static_cast<std::uint64_t>(index)));
  }
  // [0, 1), a multiple of 2^-53.
  constexpr double uniform(std::int64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  // low, ..., high, both included.
  constexpr std::int64_t integer(std::int64_t index, std::int64_t low, std::int64_t high) const {
    return low +
           static_cast<std::int64_t>(bits(index) % static_cast<std::uint64_t>(high - low + 1));
  }
  constexpr bool coin(std::int64_t index) const { return (bits(index) & 1) != 0; }
  // Mean 0, variance 1, within 4.9: a sum of eight 16-bit numbers (Irwin-Hall), because a library's
  // logarithm and cosine differ from machine to machine in the last bit.
  constexpr double normal(std::int64_t index) const {
    const std::uint64_t first = bits(index), second = mix(first);
    std::int64_t sum = 0;
    for (int shift = 0; shift < 64; shift += 16) {
      sum += static_cast<std::int64_t>((first >> shift) & 0xffff);
      sum += static_cast<std::int64_t>((second >> shift) & 0xffff);
    }
    constexpr double mean = 8 * 32767.5;
    constexpr double deviation = 53509.920573;  // sqrt(8 / 12) * 2^16
    return (static_cast<double>(sum) - mean) / deviation;
  }

 private:
  std::uint64_t key_;
};

}  // namespace indexpool::verify
