// Rounding errors of sums in binary32, as verdicts and checksums bound them. Written apart from the
// reference's own, which stays internal to it.
#pragma once

#include <cstdint>

namespace indexpool::verify {

inline constexpr double unit_roundoff = 0x1p-24;  // of binary32

// Relative error of n roundings (Higham, Accuracy and Stability, 3.1).
inline double gamma(double n) { return n * unit_roundoff / (1 - n * unit_roundoff); }

// Additions a term of a pool's checksum goes through: 8 in a row, then a tree (Higham's blocked
// summation). A checksum that adds up all channels in a row is too blunt to be one, and fails.
inline double sum_depth(std::int64_t dim) {
  constexpr std::int64_t in_a_row = 8;
  double depth = in_a_row;
  for (std::int64_t blocks = (dim + in_a_row - 1) / in_a_row; blocks > 1;
       blocks = (blocks + 1) / 2) {
    ++depth;
  }
  return depth;
}

}  // namespace indexpool::verify
