// The f32 pair that a kernel takes before rounding, against what it stored.
#pragma once

#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// For a weight vector v (all 1, or (c + 1) / D) the kernel sums v . y in f32 and stores codes q
// with scale s for the rotated y. The rotation H is orthogonal and symmetric, so v . y = (H v) . (H
// y): the sum is tied to sum_c h_c s q_c with h = H v / sqrt(D). v being linear in c, h is zero
// except in channels 0, 1, 2, 4, ..., D / 2: WITH A ROTATION THE PAIR SEES 8 OF 128 CHANNELS, and
// the scale.
//
// The difference of a correct pool is at most (u: roundoff of the pooled dtype, Y >= |y|_2, e_c
// half a code's step times s, g_n = n 2^-24 / (1 - n 2^-24)):
//   g_k |v| Y            the kernel's sum, k = 8 + log2(D / 8) roundings
//   u |v| Y              y rounded to the pooled dtype
//   g_(log2 D + 2) |h|_1 Y     the rotation in f32
//   sum_c |h_c| (u (|s q_c| + e_c) + e_c)     rounded again, quantised
// with Y from the codes: (|s q|_2 + |e|_2) widened by the roundings between. Without a rotation
// h = v and every term is taken per channel.
class LinearLink {
 public:
  explicit LinearLink(const PageShape& shape);

  // The larger of both differences over its bound: above 1, infinite or NaN is a fault.
  double utilisation(Bytes codes, Bytes scale, const kernels::PoolChecksum& checksum) const;
  bool holds(Bytes codes, Bytes scale, const kernels::PoolChecksum& checksum) const {
    return utilisation(codes, scale, checksum) <= 1;
  }

 private:
  struct Direction {
    std::vector<double> v, h;
    double v_norm = 0, h_sum = 0;  // |v|_2, |h|_1
  };
  struct Stored;  // decoded values with what rounding may have taken
  Stored decode(Bytes codes, Bytes scale) const;
  double bound(const Direction& direction, const Stored& stored) const;
  double ratio(const Direction& direction, const Stored& stored, float found) const;
  Direction direction_of(std::vector<double> v) const;

  PageShape shape_;
  Direction plain_, weighted_;
  double sum_error_ = 0, rotation_error_ = 0;  // g_k, g_(log2 D + 2)
};

}  // namespace indexpool::verify::faults
