// Memory filled from a counter: word i is a function of (seed, i) and of nothing else, so a GPU
// makes the bytes that the host would, and gigabytes need no upload.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define INDEXPOOL_BOTH __host__ __device__
#else
#define INDEXPOOL_BOTH
#endif

namespace indexpool::kernels {

// A 32-bit word of random bits: those of `keep` stay random, those of `set` are 1, the rest 0.
struct WordPattern {
  std::uint32_t keep = 0xffffffffu, set = 0;
  bool operator==(const WordPattern&) const = default;
};

// Of every `period` words (0: none) those from `other_from` on follow `other`: codes and scales of
// a page. `first_word` is the index of the first word written.
struct RandomFill {
  std::uint64_t seed = 0;
  WordPattern words;
  WordPattern other = {};
  std::int64_t period = 0, other_from = 0;
  std::int64_t first_word = 0;
};

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014).
INDEXPOOL_BOTH constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

INDEXPOOL_BOTH constexpr std::uint32_t random_word(const RandomFill& fill, std::int64_t index) {
  const std::uint64_t bits = mixed(mixed(fill.seed) ^ static_cast<std::uint64_t>(index));
  const bool other = fill.period > 0 && index % fill.period >= fill.other_from;
  const WordPattern& pattern = other ? fill.other : fill.words;
  return (static_cast<std::uint32_t>(bits >> 32) & pattern.keep) | pattern.set;
}

// Words of the host's memory; what targets without a faster way upload.
void fill_on_host(std::uint32_t* to, std::int64_t words, const RandomFill& fill);
// On the current CUDA device, in `stream` (cudaStream_t); only where built with a toolkit.
void fill_on_device(std::uint32_t* to, std::int64_t words, const RandomFill& fill, void* stream);

}  // namespace indexpool::kernels

#undef INDEXPOOL_BOTH
