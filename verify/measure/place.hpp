// The memory of a point: allocated on a target, filled there with random values of each dtype.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/verify/measure/arguments.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::timing {

// A launch that is ready: `args` as in `host`, with the target's memory. Everything a kernel reads
// is finite and of ordinary size; what it writes holds `poison`.
struct Placed {
  HostArguments host;
  kernels::OpArgs args;
  std::vector<TargetBuffer> buffers;
};
Placed place(kernels::Target& target, HostArguments host, std::uint64_t seed);

// Random bits that make numbers of a dtype: signs, exponents of 2^-3 to 2^0 and all fractions for
// floats, odd codes for integers (never -128).
kernels::WordPattern number_pattern(DType dtype);

}  // namespace indexpool::verify::timing
