// Article C: a second stream compresses what a token adds while its layer goes on, and 5 % of
// overhead are allowed. What the cost model says of both kernels of the form, beside one layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/step/predict.hpp"

namespace indexpool::verify::strategies {

inline constexpr double published_overhead = 0.05;

// What one stream of work asks for: its time alone, and of that what two streams share.
struct Lane {
  CostNumbers alone;
  Seconds hbm, hbm_low, matrix, matrix_low;
};
// Of what runs beside `main`: the share by which it lengthens it. Expected: no faster than either
// lane, nor than what both ask of HBM and matrix units together. High: nothing hides, the device
// runs one after the other.
struct Overhead {
  double value = 0, low = 0, high = 0;
};
Overhead after_each_other(const Lane& main, const Lane& side);
Overhead beside_each_other(const Lane& main, const Lane& side);

struct OverlapOptions {
  std::string device = "a100-sxm4-80gb", model = "indexpool-c-gated";
  std::int64_t gpus = 8, tokens = 1 << 20, sequences = 1;
  step::Phase phase = step::Phase::decode;
};
struct Overlap {
  OverlapOptions options;
  std::int64_t rows = 0, layers = 0;
  Lane layer, pooling;  // the layer's attention without its pooling; the form's kernels
  Overhead one_stream, two_streams;         // of a layer's attention
  double one_of_step = 0, two_of_step = 0;  // of the whole step
  Seconds step;
};
Overlap overlap(const OverlapOptions& options);

}  // namespace indexpool::verify::strategies
