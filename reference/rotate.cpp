// Sylvester-ordered Walsh-Hadamard transform times D^-0.5, then one rounding.
//
// Any order of the log2(D) butterfly levels: each output is a sum of +-x through log2(D) additions,
// so |error| <= gamma_L sum|x| over the L levels that round at all. Level l of any order holds sums
// of 2^l inputs; when these stay below 2^24 units of the lowest set bit, it is exact in binary32.
// Rounded bf16 inputs are that close together almost always, and then only the product with the
// (rounded) constant remains.
#include "indexpool/reference/rotate.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/linear.hpp"
#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {
namespace {

template <class T>
Matrix<T> sylvester(Eigen::Index dim) {
  Matrix<T> result(dim, dim);
  for (Eigen::Index i = 0; i < dim; ++i) {
    for (Eigen::Index j = 0; j < dim; ++j) {
      const bool negative = std::popcount(static_cast<std::uint64_t>(i & j)) % 2 == 1;
      result(i, j) = negative ? T(-1) : T(1);
    }
  }
  return result;
}

// What the outputs of one row may be off by, before the product with D^-0.5.
struct RowError {
  double width = 0;      // half the widths of the inputs' intervals, as every output sees them
  double rounding = 0;   // of the additions in binary32
  double magnitude = 0;  // sum |x|
};

RowError row_error(std::span<const double> low, std::span<const double> high,
                   const Format& format) {
  RowError error;
  double largest = 0;
  int unit = no_bits;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const double magnitude = std::max(std::abs(low[i]), std::abs(high[i]));
    error.magnitude += magnitude;
    error.width += (high[i] - low[i]) / 2;
    largest = std::max(largest, magnitude);
    unit = std::min(unit, unit_between(low[i], high[i], format));
  }
  int inexact_levels = 0;
  for (std::size_t terms = 2; terms <= low.size(); terms *= 2) {
    const double sum = std::min(largest * static_cast<double>(terms), error.magnitude);
    if (!sums_exactly(sum, unit)) ++inexact_levels;
  }
  error.rounding = gamma(inexact_levels) * error.magnitude;
  return error;
}

// Half-way between the ends: exact in double for neighbouring stored numbers.
std::vector<double> centres(const Bounded& rows) {
  std::vector<double> result(rows.low.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = rows.low[i] + (rows.high[i] - rows.low[i]) / 2;
  }
  return result;
}

void set_open(Bounded& rows, std::size_t at, double value) {
  const auto open = open_around(value);
  rows.value[at] = open.value, rows.low[at] = open.low, rows.high[at] = open.high;
}

// [centre - reach, centre + reach] after the product with the constant in binary32.
template <class T>
Enclosed<T> scaled(const T& centre, const T& reach, const T& scale, bool exact_scale) {
  using std::abs;
  const T middle = centre * scale, largest = (abs(centre) + reach) * scale;
  T error = reach * scale;
  // The constant's own rounding and the product's; both exact for a power of two.
  if (!exact_scale) error += largest * T(gamma(2) + 8 * epsilon<T>());
  if (largest != 0 && largest < T(0x1p-100)) error += f32_subnormal;
  return {middle, middle - error, middle + error};
}

}  // namespace

template <class T>
Bounded rotate(const Bounded& rows, DType storage) {
  using std::sqrt;
  const std::int64_t dim = rows.shape.back();
  if (dim < 1 || !std::has_single_bit(static_cast<std::uint64_t>(dim))) {
    throw ConfigError(
        fmt::format("the Hadamard rotation needs a power of two, found index_head_dim {}", dim));
  }
  const auto d = static_cast<std::size_t>(dim);
  const Eigen::Index count = rows.size() / dim;
  const Format format = format_of(storage);
  const Matrix<T> hadamard = sylvester<T>(dim);
  const Matrix<T> sums = matrix_of<T>(rows.value, count, dim) * hadamard;
  const Matrix<T> middles =
      rows.low == rows.high ? sums : Matrix<T>(matrix_of<T>(centres(rows), count, dim) * hadamard);
  const T scale = 1 / sqrt(T(static_cast<double>(dim)));
  const T stored_scale = round_f32(scale);
  const bool exact_scale = std::countr_zero(static_cast<std::uint64_t>(dim)) % 2 == 0;
  Bounded result(rows.shape);
  for (Eigen::Index r = 0; r < count; ++r) {
    const auto first = static_cast<std::size_t>(r) * d;
    const auto error = row_error(std::span(rows.low).subspan(first, d),
                                 std::span(rows.high).subspan(first, d), format);
    // Where binary32 sums exactly, so does T; elsewhere it rounds at most D times.
    const bool open = may_overflow_f32(error.magnitude);
    T reach = error.width + error.rounding;
    if (error.rounding > 0) reach += error.magnitude * static_cast<double>(dim) * epsilon<T>();
    if (error.width > 0) reach += reach * (static_cast<double>(dim) * 0x1p-52);
    for (Eigen::Index c = 0; c < dim; ++c) {
      const std::size_t at = first + static_cast<std::size_t>(c);
      if (open) {
        set_open(result, at, to_double(T(sums(r, c) * scale)));
        continue;
      }
      const auto ends =
          round_to_format(scaled<T>(middles(r, c), reach, scale, exact_scale), format);
      const T own = round_to_format(round_f32(T(round_f32(T(sums(r, c))) * stored_scale)), format);
      result.value[at] = to_double(own);
      result.low[at] = std::min(to_double(ends.low), result.value[at]);
      result.high[at] = std::max(to_double(ends.high), result.value[at]);
    }
  }
  return result;
}

template Bounded rotate<double>(const Bounded&, DType);
template Bounded rotate<Quad>(const Bounded&, DType);

Bounded rotate_queries(const IndexerInputs& inputs, Precision precision) {
  auto queries = Bounded::exact(inputs.queries);
  if (!inputs.mode.hadamard || queries.size() == 0) return queries;
  return precision == Precision::binary64 ? rotate<double>(queries, inputs.mode.pooled)
                                          : rotate<Quad>(queries, inputs.mode.pooled);
}

}  // namespace indexpool::reference
