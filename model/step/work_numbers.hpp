// Arithmetic that the shapes share. Internal to the layer.
#pragma once

#include <cstdint>

#include "indexpool/model/config.hpp"
#include "indexpool/model/step/operation.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::step {

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b > 0 ? 1 : 0);
}
inline double real(std::int64_t value) { return static_cast<double>(value); }

// A whole number of bytes. Sums of a step's bytes must stay in 63 bits: ConfigError from 2^58 on,
// saying `what` and what to make smaller.
Bytes whole_bytes(double bytes, const char* what);

// The units that multiply by parameters stored as `format`: e4m3 for FP8 (and FP4, whose values are
// e4m3's too) where the device has them, else bf16, to which kernels convert on the way.
const char* matrix_dtype(ParameterFormat format, const DeviceSpec& device);
// Bytes of an input's element in those units.
std::int64_t input_bytes(const char* dtype);

// Where the time comes from that a product's launch takes besides its terms (Work::serial_latency),
// and the factors between which it lies: with them 87 % of the rows held out lie inside.
inline constexpr const char* product_overhead_source =
    "fitted: cuBLAS on an A100, ai-dynamo/aiconfigurator 095f58a, mean error 13.8 % on the 30 % of "
    "its rows held out; a block's addresses and last stores 1.1 us, the sum over splits of k "
    "1.1 us; taken for other devices as they are";
inline constexpr double least_overhead = 0, most_overhead = 2.5;

// What no parallelism hides in a launch: its first load, and the store that the next one waits for.
Chain start_chain(std::int64_t launches);

inline constexpr std::int64_t bf16_bytes = 2, f32_bytes = 4;

}  // namespace indexpool::step
