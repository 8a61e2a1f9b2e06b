// The exact pair of sums over what is stored, of a pool and of a page. Zero tolerance: a difference
// is a fault.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// Modulo 2^32, over the units q of a state (args.hpp: codes, 16-bit elements, halves of f32) and
// the bits b of its scale, states s: sum_s (m(b_s) + sum_i q_si) and sum_s (2 U s m(b_s) + sum_i
// H_si q_si) with H_si = h_i + 2 U s for U units of a state: head_dim, twice that in f32. h_i is
// h(c), of an f32 element's low half (2 head_dim + 1) h(c); without a scale there is no m.
//
// A change of one or two of them always shows. m is a bijection, and units differ by d, 0 < |d| <
// 2^19 (e4m3: 2 x 480 / 2^-9), so one changes the first sum. Two that leave it alone are d and -d,
// and change the second by d times the difference of their weights, which is no multiple of 2^32
// when the weights differ modulo 2^14. Two units' do in any one pool and in pages of up to 2^13
// codes (64 x 128), whose H are all the odd residues modulo 2^14; a unit's weight is odd and a
// scale's even. 16-bit units differ by less than 2^16, codes of int8 by at most 255: modulo 2^17
// and 2^25 are enough, for pages of up to 2^16 and 2^24 units. Of two scales in two states 2 U (s -
// t) (m(b) - m(c)) can vanish; each pool's own pair sees them. One f32 element is two units, so any
// change of it shows; of two such elements any that leaves two of the four halves as they were.
//
// More than two can hide by chance: of pools whose first sum is right about 1 in 2^32. Changes of
// one bit k alone leave 32 - k bits of the second sum to chance, 25 for bit 7 of int8 codes, 17 for
// the highest exponent bit of 16-bit elements; signs of elements leave all 32.
struct IntegerPair {
  std::uint32_t sum = 0, weighted_sum = 0;
  bool operator==(const IntegerPair&) const = default;
};

// Of one pool, as it is stored and as the kernel said.
IntegerPair pair_of_pool(const PageShape& shape, Bytes codes, Bytes scale);
IntegerPair pair_of(const kernels::PoolChecksum& checksum);

// A pool's pair joins its page's without its codes: the first sum times 2 * units * state more in
// the second.
void fold(IntegerPair& page, const IntegerPair& pool, const PageShape& shape, std::int64_t state);

}  // namespace indexpool::verify::faults
