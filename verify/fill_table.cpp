#include <string>
#include <vector>

#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

constexpr Fill table[] = {
    {"normal", "ordinary values: every rounding step takes part", false, fill_normal},
    {"small_integers", "sums are exact: index and ordering mistakes show as whole numbers", false,
     fill_small_integers},
    {"zeros_and_ones", "keys and queries of 0 and 1: one dropped or repeated term shows", false,
     fill_zeros_and_ones},
    {"powers_of_two", "products are exact, exponents vary: alignment and scale arithmetic", false,
     fill_powers_of_two},
    {"log_uniform", "magnitudes over 34 binary orders: narrow accumulators lose the small ones",
     false, fill_log_uniform},
    {"cancellation", "pools whose tokens cancel: relative error of the sum is unbounded", false,
     fill_cancellation},
    {"constant", "all tokens alike: pooling must be the identity", true, fill_constant},
    {"alternating", "two vectors in turn: a token taken twice or from the neighbour shows", true,
     fill_alternating},
    {"uniform_gates", "equal gates: the pool is the plain mean", false, fill_uniform_gates},
    {"one_hot_gates", "one token owns each channel: the others must not leak", false,
     fill_one_hot_gates},
    {"extreme_gates", "gates of 40, 88 and 1e4 of both signs: an unshifted softmax overflows",
     false, fill_extreme_gates},
    {"shifted_gates", "all gates of a pool share a large offset: it must cancel", false,
     fill_shifted_gates},
    {"ties", "pools repeat byte for byte: the tie rule decides at the selection's edge", true,
     fill_ties},
    {"all_zero_logits", "every dot product is negative: ReLU leaves nothing but ties", true,
     fill_all_zero_logits},
    {"relu_plateau", "few positive scores, the rest exactly zero", true, fill_relu_plateau},
    {"monotone", "scores rise along the sequence: the newest pools win", false, fill_monotone},
    {"sawtooth", "scores rise within a page: page arithmetic shows in the selection", false,
     fill_sawtooth},
    {"power_law", "few pools hold most of the score", false, fill_power_law},
    {"attention_sink", "the first token dwarfs the others", false, fill_attention_sink},
    {"ar1", "neighbouring tokens are alike, as real keys are", false, fill_ar1},
    {"outlier_channel", "one channel is 50 times larger: it sets the scale of all", false,
     fill_outlier_channel},
    {"massive", "a single element of 1e5: the scale leaves nothing of the others", false,
     fill_massive},
    {"tiny", "all below the quantiser's smallest amax: its floor decides the scale", true,
     fill_tiny},
    {"subnormal", "keys are subnormal numbers of the storage dtype: no flush to zero", true,
     fill_subnormal},
    {"signed_zeros", "zeros of both signs between small values: codes and ties of -0", true,
     fill_signed_zeros},
    {"amax_edge", "amax at 448 * 2^k, one step beside it, at the tie 464 * 2^k, and 0", true,
     fill_amax_edge},
    {"near_overflow", "one pool and one query near the largest number: sums leave binary32", true,
     fill_near_overflow},
    {"e4m3_midpoints", "values half way between two codes: round to nearest even", true,
     fill_e4m3_midpoints},
};

}  // namespace

std::span<const Fill> fills() { return table; }

const Fill& find_fill(std::string_view name) {
  for (const Fill& fill : table) {
    if (fill.name == name) return fill;
  }
  const std::vector<std::string> near = near_names(name, fill_names());
  throw ConfigError(fmt::format("there is no fill '{}'; {}: {}", name,
                                near.empty() ? "the fills are" : "near names",
                                fmt::join(near.empty() ? fill_names() : near, ", ")));
}

std::vector<std::string> fill_names() {
  std::vector<std::string> names;
  for (const Fill& fill : table) names.emplace_back(fill.name);
  return names;
}

std::string fill_purpose(const std::string& name) { return std::string(find_fill(name).purpose); }

}  // namespace indexpool::verify
