// The exact pair of sums over codes and scales, of a pool and of a page. Zero tolerance: a
// difference is a fault.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// Modulo 2^32, over the codes q of channels c in units of their format's smallest step and the bits
// b of the scales, states s: sum_s (m(b_s) + sum_c q_sc) and sum_s (2 D s m(b_s) + sum_c H_sc q_sc)
// with H_sc = h(c) + 2 D s; m and h as in kernels/args.hpp.
//
// A change of one or two of them always shows. m is a bijection, and codes differ by d, 0 < |d| <
// 2^19 (e4m3: 2 x 480 / 2^-9), so one changes the first sum. Two that leave it alone are d and -d,
// and change the second by d times the difference of their weights, which is no multiple of 2^32
// when the weights differ modulo 2^14. Two codes' do in any one pool and in pages of up to 2^13
// codes (64 x 128), whose H are all the odd residues; a code's weight is odd and a scale's even.
// Codes of int8 differ by at most 255: modulo 2^25 is enough, for pages of up to 2^24 codes. Of two
// scales in two states 2 D (s - t) (m(b) - m(c)) can vanish; each pool's own pair sees them.
//
// More than two can hide by chance: of pools whose first sum is right about 1 in 2^32, up to 1 in
// 2^25 when the changes are all of bit 7 of int8 codes.
struct IntegerPair {
  std::uint32_t sum = 0, weighted_sum = 0;
  bool operator==(const IntegerPair&) const = default;
};

// Whether the kernels emit the pair: quantised modes only.
inline bool has_integer_pair(const PageShape& shape) { return shape.quantised(); }

// Of one pool, as it is stored and as the kernel said.
IntegerPair pair_of_pool(const PageShape& shape, Bytes codes, Bytes scale);
IntegerPair pair_of(const kernels::PoolChecksum& checksum);

// A pool's pair joins its page's without its codes: the first sum times 2 * head_dim * state more
// in the second.
void fold(IntegerPair& page, const IntegerPair& pool, const PageShape& shape, std::int64_t state);

}  // namespace indexpool::verify::faults
