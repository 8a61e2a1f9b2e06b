// The exact pair of sums over codes, of a pool and of a page. Zero tolerance: a difference is a
// fault.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// Over the codes q_i in units of their format's smallest step: sum_i q_i and sum_i (i + 1) q_i,
// modulo 2^32. A change of one or two codes always shows. Codes differ by d, 0 < |d| < 2^19 (e4m3:
// 2 x 480 / 2^-9), so one changes the first sum; two that leave it alone are d and -d at i != j and
// change the second by d (i - j), less than 2^32 in a page of up to 2^13 codes (64 x 128).
// Four can hide: d, -d, -d, d at equal distances (Prouhet). Stripes of one bit through int8 codes,
// all of whose steps are alike, do so now and then; the CRC sees them.
struct IntegerPair {
  std::uint32_t sum = 0, weighted_sum = 0;
  bool operator==(const IntegerPair&) const = default;
};

// Whether the kernels emit the pair: quantised modes only.
inline bool has_integer_pair(const PageShape& shape) { return shape.quantised(); }

// Of one pool's codes, i = 0 ... head_dim - 1.
IntegerPair pair_of_codes(const PageShape& shape, Bytes codes);
IntegerPair pair_of(const kernels::PoolChecksum& checksum);

// The page's pair counts i on through its states: i = state * head_dim + channel. A pool's pair
// folds in without its codes: weighted sums shift by state * head_dim * sum.
void fold(IntegerPair& page, const IntegerPair& pool, const PageShape& shape, std::int64_t state);
// Scales join at the fold, as one more term each behind all codes. Their bits go through a
// bijection first: a changed scale always changes the sum, and the same flip in many scales does
// not cancel.
void fold_scale(IntegerPair& page, Bytes scale, const PageShape& shape, std::int64_t state);

}  // namespace indexpool::verify::faults
