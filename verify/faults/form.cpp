#include "indexpool/verify/faults/form.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace indexpool::verify::faults {
namespace {

constexpr float smallest_amax = 1e-4f;  // the floor under amax of all scale rules

float float_at(Bytes bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// The largest magnitude of an e4m3 row as a code without its sign (codes order as their values do);
// 0x7f when a code is NaN.
int largest_e4m3(Bytes codes) {
  int largest = 0;
  for (const std::byte code : codes) largest = std::max(largest, std::to_integer<int>(code) & 0x7f);
  return largest;
}

bool e4m3_holds(const PageShape& shape, Bytes codes, float scale) {
  constexpr int nan = 0x7f, code_of_448 = 0x7e, code_of_224 = 0x76;
  const int largest = largest_e4m3(codes);
  if (largest == nan || !std::isfinite(scale) || scale <= 0) return false;
  if (shape.mode.scale == ScaleRule::power_of_two) {
    int exponent = 0;
    constexpr float floor = 0x1p-22f;  // 2^ceil(log2(1e-4 / 448))
    if (std::frexp(scale, &exponent) != 0.5f || scale < floor) return false;
    return scale == floor || largest >= code_of_224;
  }
  const float floor = smallest_amax / 448.0f;
  return scale >= floor && (scale == floor || largest == code_of_448);
}

bool i8_holds(Bytes codes, float scale) {
  int largest = 0;
  for (const std::byte code : codes) {
    largest = std::max(largest, std::abs(static_cast<int>(static_cast<std::int8_t>(code))));
  }
  const float floor = smallest_amax / 127.0f;
  if (largest > 127 || !std::isfinite(scale) || !(scale >= floor)) return false;
  return scale == floor || largest == 127;
}

}  // namespace

bool form_holds(const PageShape& shape, Bytes codes, Bytes scale) {
  if (shape.mode.cache == DType::e4m3) return e4m3_holds(shape, codes, float_at(scale));
  if (shape.mode.cache == DType::i8) return i8_holds(codes, float_at(scale));
  for (std::int64_t c = 0; c < shape.head_dim; ++c) {
    if (!std::isfinite(load_element(shape.mode.cache, codes.data(), c))) return false;
  }
  return true;
}

}  // namespace indexpool::verify::faults
