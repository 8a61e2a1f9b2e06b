#include "indexpool/verify/checks/exact_sums.hpp"

#include <array>

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

constexpr auto weights = [] {
  std::array<std::uint32_t, largest_summed_head> table{};
  for (std::uint32_t channel = 0; channel < table.size(); ++channel) {
    table[channel] = weight(channel);
  }
  return table;
}();

}  // namespace

std::uint32_t scale_term(std::uint32_t bits) { return finalised(bits); }

std::span<const std::uint32_t> code_weights(std::int64_t head_dim) {
  if (head_dim < 0 || head_dim > largest_summed_head) {
    throw InternalError(
        fmt::format("weights of the exact sums: found head_dim {}, expected 0 to {}", head_dim,
                    largest_summed_head));
  }
  return std::span(weights).first(static_cast<std::size_t>(head_dim));
}

}  // namespace indexpool::verify
