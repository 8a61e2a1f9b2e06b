// What the exact pair of a pool's checksum adds up (kernels/args.hpp, PoolChecksum). Written apart
// from the kernels' own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "indexpool/model/dtype.hpp"

namespace indexpool::verify {

// The scale's share of the first sum: its bits through the finaliser of MurmurHash3. A bijection,
// so a changed scale always changes the sum; scrambled, so the same flip in many scales does not
// cancel.
std::uint32_t scale_term(std::uint32_t bits);

// h(c) of a head's channels, [head_dim]: what a code or a 16-bit element counts in the second sum.
// All odd, different modulo 2 * head_dim. Throws InternalError beyond the largest head that is
// defined.
inline constexpr std::int64_t largest_summed_head = 2048;
std::span<const std::uint32_t> code_weights(std::int64_t head_dim);

// Both sums over a row whose elements are not quantised, from their bits. Any NaN counts as the
// bits it has. `cache`: f32, bf16 or f16.
struct ExactPair {
  std::uint32_t sum = 0, weighted = 0;
};
ExactPair pair_of_elements(DType cache, std::span<const std::byte> row);

}  // namespace indexpool::verify
