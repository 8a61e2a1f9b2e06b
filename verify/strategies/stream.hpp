// What a strategy meets: a planted sequence that is prefilled, then decoded token by token, in one
// layer or several.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/reference/training/planted.hpp"

namespace indexpool::verify::strategies {

// All numbers of this struct are our choice: the articles give none.
struct StreamOptions {
  std::uint64_t seed = 1;
  std::int64_t sequences = 24, tokens = 512, steps = 48;  // the last `steps` tokens are decoded
  std::int64_t head_dim = 32, heads = 4;
  // Layers after the first have the keys of the one before, turned by `layer_noise`.
  std::int64_t layers = 1;
  double layer_noise = 0.3;
  // Before each decode step every cached key moves with this chance, a little or a lot (in shares
  // of the keys' root mean square).
  double small_chance = 0, large_chance = 0;
  double small_move = 0.02, large_move = 0.5;
  // Of segments of 32 tokens this share is calm: keys within `calm_spread` of the segment's first.
  double calm_share = 0, calm_spread = 0.2;
};
// ConfigError: tokens not a multiple of 4, or fewer than 64 before the first step.
void validate(const StreamOptions& options);

struct Stream {
  std::int64_t tokens = 0, steps = 0, head_dim = 0, heads = 0;
  std::int64_t number = 0;                 // of the sequence
  std::vector<std::vector<double>> keys;   // of each layer [tokens, D]
  std::vector<double> queries;             // [steps, H, D]
  std::vector<double> head_weights;        // [steps, H]
  std::vector<double> ages, access_terms;  // [tokens]
  std::vector<std::int64_t> salient;       // [tokens / 4] places
  double key_rms = 0, mean_key_norm = 0;   // of the first layer, as it starts

  std::int64_t prefill() const { return tokens - steps; }
  std::int64_t layers() const { return static_cast<std::int64_t>(keys.size()); }
  std::span<const double> group(std::int64_t layer, std::int64_t first, std::int64_t count) const;
  // The heads' queries, averaged by their weights: what a weight that asks for one query gets.
  std::vector<double> query_of(std::int64_t step) const;
};
// Sequences first .. first + sequences - 1 of the seed.
std::vector<Stream> make_streams(const StreamOptions& options, std::int64_t first = 0);
// Moves the keys of the first `tokens` tokens, as before decode step `step`.
void revise(const StreamOptions& options, std::int64_t step, std::int64_t tokens, Stream& stream);

}  // namespace indexpool::verify::strategies
