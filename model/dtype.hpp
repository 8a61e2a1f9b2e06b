// Element types and their bit-exact conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace indexpool {

enum class DType { f64, f32, bf16, f16, e4m3, e5m2, i64, i32, i8, u8 };

struct DTypeInfo {
  DType dtype;
  std::string_view name;              // as in our JSON: "bf16"
  std::string_view safetensors_name;  // as in a safetensors header: "BF16"
  int bytes;
  bool is_float;
  double unit_roundoff;       // half the relative spacing of normals; 0 for integers
  double largest;             // largest finite value
  double smallest_subnormal;  // spacing below the smallest normal; 0 for integers
};

const DTypeInfo& info(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_safetensors_name(std::string_view name);

// Round to nearest, ties to even; overflow goes to infinity; NaN becomes 0x7fff.
std::uint16_t bf16_from_float(float value);
std::uint16_t f16_from_float(float value);
float float_from_bf16(std::uint16_t bits);
float float_from_f16(std::uint16_t bits);

// FP8 as in the OCP OFP8 specification: e4m3 (the "fn" variant: no infinities, NaN is 0x7f/0xff,
// largest 448), e5m2 (infinities, largest 57344). Conversion rounds likewise, and saturates as
// cvt.rn.satfinite does: infinities too become the largest value; NaN becomes 0x7f.
std::uint8_t e4m3_from_float(float value);
std::uint8_t e5m2_from_float(float value);
float float_from_e4m3(std::uint8_t code);
float float_from_e5m2(std::uint8_t code);

// Round to nearest even, saturated to [-127, 127] (symmetric: -128 is never produced); NaN gives 0.
std::int8_t i8_from_float(float value);

// One element at `data` + `index`, as a double (exact for every dtype up to 32 bits and for f64;
// i64 is exact below 2^53).
double load_element(DType dtype, const std::byte* data, std::int64_t index);
// Rounds `value` once, directly from double to the dtype (no double rounding through float).
void store_element(DType dtype, std::byte* data, std::int64_t index, double value);
// `value` rounded to the dtype and read back.
double round_to(DType dtype, double value);

}  // namespace indexpool
