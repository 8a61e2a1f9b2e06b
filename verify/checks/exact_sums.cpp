#include "indexpool/verify/checks/exact_sums.hpp"

#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify {
namespace {

constexpr std::uint32_t finalised(std::uint32_t word) {
  constexpr std::uint32_t multipliers[] = {0x85ebca6bu, 0xc2b2ae35u};
  constexpr int shifts[] = {16, 13};
  for (int round = 0; round < 2; ++round) {
    word ^= word >> shifts[round];
    word *= multipliers[round];
  }
  return word ^ (word >> 16);
}

// A factor for the channel within eight and one for the eight, their low bits chosen so that the
// products differ: odd residues modulo 16, then residues 1 modulo 16.
constexpr std::uint32_t weight(std::uint32_t channel) {
  const std::uint32_t within = channel % 8, eight = channel / 8;
  const std::uint32_t fine = finalised(within) * 16 + (2 * within + 1);
  const std::uint32_t coarse = finalised(eight) * 4096 + (16 * eight + 1);
  return fine * coarse;
}

constexpr auto all_weights = [] {
  std::array<std::uint32_t, largest_summed_head> table{};
  for (std::uint32_t channel = 0; channel < table.size(); ++channel) {
    table[channel] = weight(channel);
  }
  return table;
}();

// Element `c` of the row, its sign the lowest bit.
template <class Word>
std::uint32_t sign_last(std::span<const std::byte> row, std::size_t c) {
  Word word = 0;
  std::memcpy(&word, row.data() + c * sizeof(Word), sizeof(Word));
  return std::rotl(word, 1);
}

}  // namespace

std::uint32_t scale_term(std::uint32_t bits) { return finalised(bits); }

std::span<const std::uint32_t> code_weights(std::int64_t head_dim) {
  if (head_dim < 0 || head_dim > largest_summed_head) {
    throw InternalError(
        fmt::format("weights of the exact sums: found head_dim {}, expected 0 to {}", head_dim,
                    largest_summed_head));
  }
  return std::span(all_weights).first(static_cast<std::size_t>(head_dim));
}

ExactPair pair_of_elements(DType cache, std::span<const std::byte> row) {
  const std::int64_t channels = std::ssize(row) / info(cache).bytes;
  const std::uint32_t low_half = 2 * static_cast<std::uint32_t>(channels) + 1;
  const auto weights = code_weights(channels);
  ExactPair pair;
  for (std::size_t c = 0; c < weights.size(); ++c) {
    if (cache == DType::f32) {
      const std::uint32_t bits = sign_last<std::uint32_t>(row, c);
      const std::uint32_t high = bits / 0x10000, low = bits % 0x10000;
      pair.sum += high + low;
      pair.weighted += weights[c] * high + weights[c] * low_half * low;
    } else {
      const std::uint32_t bits = sign_last<std::uint16_t>(row, c);
      pair.sum += bits;
      pair.weighted += weights[c] * bits;
    }
  }
  return pair;
}

}  // namespace indexpool::verify
