#include "indexpool/verify/faults/integer_pair.hpp"

#include <array>
#include <cmath>
#include <cstring>

#include "indexpool/model/dtype.hpp"
#include "indexpool/verify/checks/exact_sums.hpp"

namespace indexpool::verify::faults {
namespace {

using Units = std::array<std::int32_t, 256>;  // by code

// e4m3 in steps of 2^-9. NaN counts as the 480 its bits would be if they were a number, as in the
// kernels, so that a code that turned into NaN changes the sums.
Units e4m3_units() {
  Units units{};
  for (int code = 0; code < 256; ++code) {
    const float value = float_from_e4m3(static_cast<std::uint8_t>(code));
    const float magnitude = std::isnan(value) ? 480.0f : std::abs(value);
    const auto steps = static_cast<std::int32_t>(std::ldexp(magnitude, 9));
    units[static_cast<std::size_t>(code)] = code >= 128 ? -steps : steps;
  }
  return units;
}

Units i8_units() {
  Units units{};
  for (int code = 0; code < 256; ++code) {
    units[static_cast<std::size_t>(code)] = code < 128 ? code : code - 256;
  }
  return units;
}

const Units& units_of(DType dtype) {
  static const Units e4m3 = e4m3_units(), i8 = i8_units();
  return dtype == DType::e4m3 ? e4m3 : i8;
}

}  // namespace

IntegerPair pair_of_pool(const PageShape& shape, Bytes codes, Bytes scale) {
  if (!shape.quantised()) {
    const ExactPair elements = pair_of_elements(shape.mode.cache, codes);
    return {elements.sum, elements.weighted};
  }
  const Units& units = units_of(shape.mode.cache);
  const auto weights = code_weights(shape.head_dim);
  std::uint32_t bits = 0;
  std::memcpy(&bits, scale.data(), sizeof(bits));
  IntegerPair pair{scale_term(bits), 0};
  for (std::size_t c = 0; c < weights.size(); ++c) {
    const auto q = static_cast<std::uint32_t>(units[std::to_integer<std::size_t>(codes[c])]);
    pair.sum += q;
    pair.weighted_sum += weights[c] * q;
  }
  return pair;
}

IntegerPair pair_of(const kernels::PoolChecksum& checksum) {
  return {checksum.exact_sum, checksum.exact_weighted_sum};
}

void fold(IntegerPair& page, const IntegerPair& pool, const PageShape& shape, std::int64_t state) {
  const std::int64_t units = shape.head_dim * (shape.mode.cache == DType::f32 ? 2 : 1);
  page.sum += pool.sum;
  page.weighted_sum += pool.weighted_sum + static_cast<std::uint32_t>(2 * units * state) * pool.sum;
}

}  // namespace indexpool::verify::faults
