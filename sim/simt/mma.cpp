#include "indexpool/sim/simt/mma.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace indexpool::sim::simt {
namespace {

constexpr int rows = 16, columns = 8;
// Exponent of a zero: below every product of numbers, and twice it still fits 16 bits.
constexpr std::int16_t no_exponent = -8192;

// K columns of a left factor or rows of a right one, decoded.
template <int Outer, int Inner>
struct Factor {
  double value[Outer][Inner];
  std::int16_t exponent[Outer][Inner];
  bool finite = true;
};

struct Format {
  int mantissa_bits, bias, special;  // exponent field of infinities and NaN
};
constexpr Format bf16{7, 127, 255};
constexpr Format f16{10, 15, 31};

template <int Outer, int Inner>
void decode(const Format& format, const std::uint16_t* codes, Factor<Outer, Inner>& factor) {
  const int shift = 23 - format.mantissa_bits;
  const float rescale = std::ldexp(1.0f, 127 - format.bias);  // exact, also for subnormals
  bool finite = true;
  for (int i = 0; i < Outer; ++i) {
    for (int j = 0; j < Inner; ++j) {
      const std::uint32_t code = codes[i * Inner + j];
      const std::uint32_t magnitude = code & 0x7fffu;
      const int field = static_cast<int>(magnitude >> format.mantissa_bits);
      const float size = std::bit_cast<float>(magnitude << shift) * rescale;
      factor.value[i][j] = code & 0x8000u ? -size : size;
      const int exponent = std::max(field, 1) - format.bias;
      factor.exponent[i][j] = magnitude == 0 ? no_exponent : static_cast<std::int16_t>(exponent);
      finite &= field != format.special;
    }
  }
  factor.finite = finite;
}

// Infinities and NaN, for a step that has any: the widening above kept only their bits.
template <int Outer, int Inner>
void restore_specials(const Format& format, const std::uint16_t* codes,
                      Factor<Outer, Inner>& factor) {
  for (int i = 0; i < Outer; ++i) {
    for (int j = 0; j < Inner; ++j) {
      const std::uint32_t code = codes[i * Inner + j];
      if (static_cast<int>((code & 0x7fffu) >> format.mantissa_bits) != format.special) continue;
      const bool is_nan = (code & ((1u << format.mantissa_bits) - 1)) != 0;
      const double infinity = std::numeric_limits<double>::infinity();
      factor.value[i][j] = is_nan ? std::numeric_limits<double>::quiet_NaN()
                                  : (code & 0x8000u ? -infinity : infinity);
    }
  }
}

std::int16_t exponent_of(float value) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
  if (magnitude == 0) return no_exponent;
  return static_cast<std::int16_t>(std::max<int>(static_cast<int>(magnitude >> 23), 1) - 127);
}

double power_of_two(int exponent) {  // normal doubles only
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Towards zero; from 2^128 on infinity; what is cut to nothing is +0.
float cut_to_float(double value) {
  if (std::fabs(value) >= 0x1p128) {
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value));
  }
  if (std::fabs(value) < 0x1p-149) return 0.0f;
  const float nearest = static_cast<float>(value);
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u));
}

// One row of d: K products and the accumulator in one step.
template <int K, int Inner>
void step_row(int fractional_bits, const double* a, const std::int16_t* a_exponent,
              const double (*b)[Inner], const std::int16_t (*b_exponent)[Inner], float* d) {
  static_assert(Inner == columns && K <= 16);
  std::int16_t top[columns];
  for (int j = 0; j < columns; ++j) top[j] = exponent_of(d[j]);
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < columns; ++j) {
      top[j] = std::max(top[j], static_cast<std::int16_t>(a_exponent[k] + b_exponent[k][j]));
    }
  }
  // In units of the last kept bit a product is below 2^(fractional_bits + 2) <= 2^27, so that eight
  // of them fit 32 bits; the conversion to an integer is the cut.
  double unit[columns], scale[columns];
  std::int32_t low[columns] = {}, high[columns] = {};
  for (int j = 0; j < columns; ++j) {
    const int exponent = std::max<int>(top[j], -512) - fractional_bits;
    unit[j] = power_of_two(exponent);
    scale[j] = power_of_two(-exponent);
  }
  for (int k = 0; k < K; ++k) {
    std::int32_t* sum = k < 8 ? low : high;
    for (int j = 0; j < columns; ++j) {
      sum[j] += static_cast<std::int32_t>(a[k] * b[k][j] * scale[j]);
    }
  }
  for (int j = 0; j < columns; ++j) {
    const auto accumulator = static_cast<std::int32_t>(static_cast<double>(d[j]) * scale[j]);
    const double sum = static_cast<double>(low[j]) + high[j] + accumulator;  // exact
    d[j] = cut_to_float(sum * unit[j] + 0.0);
  }
}

float special_sum(const double* a, const double (*b)[columns], int column, int from, int to,
                  float c) {
  double sum = c;
  for (int k = from; k < to; ++k) sum += a[k] * b[k][column];
  if (std::isnan(sum)) return std::bit_cast<float>(0x7fffffffu);
  return static_cast<float>(sum);
}

struct Factors {
  Factor<rows, 16> a;
  Factor<16, columns> b;
};

void finite_row(MatrixModel model, const Factors& f, int i, float* d) {
  if (model == MatrixModel::sm90) {
    step_row<16>(25, f.a.value[i], f.a.exponent[i], f.b.value, f.b.exponent, d);
    return;
  }
  step_row<8>(24, f.a.value[i], f.a.exponent[i], f.b.value, f.b.exponent, d);
  float overflow[columns];  // of the first step: stays infinite through the second
  for (int j = 0; j < columns; ++j) {
    overflow[j] = std::isfinite(d[j]) ? 0 : d[j];
    if (overflow[j] != 0) d[j] = 0;
  }
  step_row<8>(24, f.a.value[i] + 8, f.a.exponent[i] + 8, f.b.value + 8, f.b.exponent + 8, d);
  for (int j = 0; j < columns; ++j) {
    if (overflow[j] != 0) d[j] = overflow[j];
  }
}

// A row in which some column meets an infinity or NaN: those columns by IEEE addition, the others,
// which must not notice, with that column's own factors taken out.
void special_row(MatrixModel model, Factors& f, int i, float* d) {
  float special[columns];
  bool is_special[columns];
  float finite[columns];
  for (int j = 0; j < columns; ++j) {
    bool all_finite = std::isfinite(d[j]);
    for (int k = 0; k < 16; ++k) {
      all_finite &= std::isfinite(f.a.value[i][k]) && std::isfinite(f.b.value[k][j]);
    }
    is_special[j] = !all_finite;
    if (!all_finite) special[j] = special_sum(f.a.value[i], f.b.value, j, 0, 16, d[j]);
    finite[j] = all_finite ? d[j] : 0;
  }
  Factors clean = f;
  for (int k = 0; k < 16; ++k) {
    if (!std::isfinite(clean.a.value[i][k])) clean.a.value[i][k] = 0;
    for (int j = 0; j < columns; ++j) {
      if (is_special[j]) clean.b.value[k][j] = 0;
    }
  }
  finite_row(model, clean, i, finite);
  for (int j = 0; j < columns; ++j) d[j] = is_special[j] ? special[j] : finite[j];
}

bool all_finite(const float* d) {
  bool finite = true;
  for (int i = 0; i < rows * columns; ++i) finite &= std::isfinite(d[i]);
  return finite;
}

std::uint16_t f16_from_e4m3(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80u) << 8;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7f) return static_cast<std::uint16_t>(sign | 0x7fffu);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  if (magnitude >= 8) return static_cast<std::uint16_t>(sign | ((magnitude << 7) + (8u << 10)));
  // Subnormal: magnitude * 2^-9, a normal number of binary16.
  const int top = std::bit_width(magnitude) - 1;
  const std::uint32_t mantissa = (magnitude << (10 - top)) & 0x3ffu;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(top - 9 + 15) << 10 |
                                    mantissa);
}

std::array<std::uint16_t, 256> build_f16_of_e4m3() {
  std::array<std::uint16_t, 256> table{};
  for (int code = 0; code < 256; ++code)
    table[code] = f16_from_e4m3(static_cast<std::uint8_t>(code));
  return table;
}

}  // namespace

void multiply_add_16x8x16(MatrixModel model, HalfFormat format, const std::uint16_t* a,
                          const std::uint16_t* b, float* d) {
  const Format& layout = format == HalfFormat::bf16 ? bf16 : f16;
  Factors factors;
  decode(layout, a, factors.a);
  decode(layout, b, factors.b);
  if (factors.a.finite && factors.b.finite && all_finite(d)) {
    for (int i = 0; i < rows; ++i) finite_row(model, factors, i, d + i * columns);
    return;
  }
  restore_specials(layout, a, factors.a);
  restore_specials(layout, b, factors.b);
  for (int i = 0; i < rows; ++i) special_row(model, factors, i, d + i * columns);
}

void multiply_add_16x8x32_e4m3(const std::uint8_t* a, const std::uint8_t* b, float* d) {
  static const std::array<std::uint16_t, 256> f16_of = build_f16_of_e4m3();
  float sum[rows * columns] = {};
  for (int half = 0; half < 2; ++half) {
    std::uint16_t a_half[rows * 16], b_half[16 * columns];
    for (int k = 0; k < 16; ++k) {
      const int from = k / 2 * 4 + half * 2 + k % 2;
      for (int i = 0; i < rows; ++i) a_half[i * 16 + k] = f16_of[a[i * 32 + from]];
      for (int j = 0; j < columns; ++j) b_half[k * columns + j] = f16_of[b[from * columns + j]];
    }
    multiply_add_16x8x16(MatrixModel::sm90, HalfFormat::f16, a_half, b_half, sum);
  }
  for (int i = 0; i < rows * columns; ++i) {
    d[i] += sum[i];
    if (std::isnan(d[i])) d[i] = std::bit_cast<float>(0x7fffffffu);
  }
}

void multiply_add_16x8x32_s8(const std::int8_t* a, const std::int8_t* b, std::int32_t* d) {
  for (int i = 0; i < rows; ++i) {
    std::int32_t sum[columns] = {};  // at most 32 * 2^14
    for (int k = 0; k < 32; ++k) {
      for (int j = 0; j < columns; ++j) sum[j] += a[i * 32 + k] * b[k * columns + j];
    }
    for (int j = 0; j < columns; ++j) {
      d[i * columns + j] = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(d[i * columns + j]) + static_cast<std::uint32_t>(sum[j]));
    }
  }
}

}  // namespace indexpool::sim::simt
