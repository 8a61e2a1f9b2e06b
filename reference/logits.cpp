// Logits of queries against pooled keys: I = s_k sum_h w_h relu(q_h . k), and how far a correct
// implementation may be off.
//
// Dot products.
//   f32_any_order: gamma_D sum|q k| (D products and additions; Higham 3.1).
//   truncated (tensor cores): products are exact, aligned to the largest summand M, accumulator
//     included, cut to F fractional bits, added exactly, the result cut to P bits. Per instruction
//     |error| <= (step + 1) 2^-F M + 2^-P |sum| with M, |sum| <= S = sum|q k|; D / step of them.
//     With `parts` > 1 an instruction chains `parts` sums of `step` products that start from zero,
//     and adds the last to the accumulator to nearest: the cuts then scale with the instruction's
//     own share of S, which add up to S, and only u S remains for every addition.
//     Subnormal operands are aligned by the exponent of the smallest normal, so M may exceed S
//     there (aligned_by); nothing is cut when all products are multiples of the last kept bit.
//   exact_integer: none; the conversion to binary32 rounds beyond 2^24.
//   When every product is a multiple of a unit U and S <= 2^23 U, all of the above are exact
//   (unless a folded scale rounds first).
// ReLU is monotone, so it maps ends to ends: a dot product surely below zero contributes exactly 0.
// Head sum: constant, two products for the prescaled head weight, product with the ReLU, H - 1
// additions, scale of the key: gamma_(H+4) sum|w| relu. Scales folded into dequantised operands
// round inside a binary32 dot product instead (gamma_(D+2)); powers of two do not round at all.
// Where an operand is not finite, or the magnitudes of a sum may leave binary32, with the scales
// applied before or after, the logit is open.
#include <algorithm>
#include <cmath>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/dot_error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/linear.hpp"
#include "indexpool/reference/rounding.hpp"

namespace indexpool::reference {

Accumulation f32_any_order() { return {}; }

// sm_80: an instruction of 16 products works in two steps of 8 and keeps 24 fractional bits (Fasi,
// Higham, Mikaitis, Pranesh 2021); sm_90: one step of 16, 25 bits (measured). The former is wider.
Accumulation mma_f16_bf16() { return {Accumulation::Kind::truncated, 8, 24, 23, 1}; }

// Measured on an H200: two halves of 16 products with 25 fractional bits, the second starting from
// the first's result, then added to the accumulator to nearest.
Accumulation mma_e4m3() { return {Accumulation::Kind::truncated, 16, 25, 23, 2}; }

Accumulation mma_i8() { return {Accumulation::Kind::exact_integer, 32, 0, 0, 1}; }

double dot_error(const Accumulation& accumulation, std::int64_t dim, int folded_scales) {
  const double n = static_cast<double>(dim);
  if (accumulation.kind == Accumulation::Kind::f32_any_order) return gamma(n + folded_scales);
  if (accumulation.kind == Accumulation::Kind::exact_integer) return 0;
  const double step = accumulation.step, parts = accumulation.parts;
  const double cut = (step + 1) * std::ldexp(1.0, -accumulation.fraction_bits) +
                     std::ldexp(1.0, -accumulation.output_bits);
  const double instructions = std::ceil(n / (step * parts));
  const double first_order =
      accumulation.parts > 1 ? parts * cut + instructions * u32 : instructions * cut;
  // M and the sums are those of computed values, larger than S by no more than the error itself.
  return first_order * (1 + 2 * first_order);
}

namespace {

bool powers_of_two(std::span<const double> scales) {
  return std::ranges::all_of(scales, [](double s) {
    int exponent = 0;
    return std::frexp(s, &exponent) == 0.5;
  });
}

// Lowest set bit of each row's elements.
std::vector<int> units(std::span<const double> values, std::size_t dim) {
  std::vector<int> result(dim == 0 ? 0 : values.size() / dim, no_bits);
  for (std::size_t i = 0; i < result.size() * dim; ++i) {
    result[i / dim] = std::min(result[i / dim], lowest_bit(values[i]));
  }
  return result;
}

// What decides how far a row's products are shifted when some operands are subnormal.
struct Alignment {
  double largest = 0;
  bool subnormal = false;
};
std::vector<Alignment> alignments(std::span<const double> values, std::size_t dim,
                                  double smallest_normal) {
  std::vector<Alignment> result(dim == 0 ? 0 : values.size() / dim);
  for (std::size_t i = 0; i < result.size() * dim; ++i) {
    Alignment& row = result[i / dim];
    const double magnitude = std::abs(values[i]);
    row.largest = std::max(row.largest, magnitude);
    row.subnormal = row.subnormal || (magnitude > 0 && magnitude < smallest_normal);
  }
  return result;
}

template <class T>
class LogitRows {
 public:
  LogitRows(const LogitOperands& operands, const Accumulation& accumulation)
      : operands_(operands),
        accumulation_(accumulation),
        dim_(static_cast<std::size_t>(operands.head_dim)),
        heads_(static_cast<std::size_t>(operands.heads)),
        query_units_(units(operands.queries, dim_)),
        pool_units_(units(operands.pools, dim_)),
        query_alignments_(alignments(operands.queries, dim_, operands.smallest_normal)),
        pool_alignments_(alignments(operands.pools, dim_, operands.smallest_normal)),
        pools_(matrix_of<T>(operands.pools, static_cast<Eigen::Index>(pool_units_.size()),
                            operands.head_dim)),
        pool_magnitudes_(pools_.cwiseAbs()) {
    if (accumulation.kind == Accumulation::Kind::f32_any_order) {
      folded_scales_ = (powers_of_two(operands.query_scales) ? 0 : 1) +
                       (powers_of_two(operands.pool_scales) ? 0 : 1);
    }
    dot_error_ = dot_error(accumulation, operands.head_dim, folded_scales_);
    head_error_ = gamma(static_cast<double>(heads_) + 4);
  }

  // Logits of one row against its visible pools, written to columns [0, visible).
  void row(std::size_t index, std::int64_t visible, std::span<double> value, std::span<double> low,
           std::span<double> high) const {
    using std::isfinite;
    const Matrix<T> queries =
        matrix_of<T>(operands_.queries.subspan(index * heads_ * dim_, heads_ * dim_),
                     static_cast<Eigen::Index>(heads_), operands_.head_dim);
    const auto seen = static_cast<Eigen::Index>(visible);
    const Matrix<T> dots = queries * pools_.topRows(seen).transpose();
    const Matrix<T> sums = queries.cwiseAbs() * pool_magnitudes_.topRows(seen).transpose();
    const std::vector<T> head_weights = scaled_head_weights(index);
    for (Eigen::Index p = 0; p < seen; ++p) {
      auto result = logit(index, p, dots, sums, head_weights);
      if (may_overflow_f32(largest_intermediate(index, p, sums))) {
        result = open_around(isfinite(result.value) ? result.value : T(0));
      }
      const auto column = static_cast<std::size_t>(p);
      value[column] = to_double(result.value);
      low[column] = std::min(double_below(result.low), value[column]);
      high[column] = std::max(double_above(result.high), value[column]);
    }
  }

 private:
  std::vector<T> scaled_head_weights(std::size_t index) const {
    std::vector<T> result(heads_);
    for (std::size_t h = 0; h < heads_; ++h) {
      const std::size_t at = index * heads_ + h;
      const double scale = operands_.query_scales.empty() ? 1 : operands_.query_scales[at];
      result[h] = T(operands_.head_weights[at]) * T(scale) * T(operands_.logit_scale);
    }
    return result;
  }

  // The largest magnitude by which products with a subnormal factor are aligned; 0 when that cuts
  // nothing.
  double aligned_by(std::size_t head_row, Eigen::Index pool, int unit) const {
    if (accumulation_.kind != Accumulation::Kind::truncated) return 0;
    const Alignment& query = query_alignments_[head_row];
    const Alignment& key = pool_alignments_[static_cast<std::size_t>(pool)];
    if (!query.subnormal && !key.subnormal) return 0;
    const double largest = operands_.smallest_normal *
                           std::max({query.largest, key.largest, operands_.smallest_normal});
    return std::ldexp(largest, -accumulation_.fraction_bits) > std::ldexp(1.0, unit) ? largest : 0;
  }

  // Half the interval of one dot product.
  T reach(std::size_t head_row, Eigen::Index pool, const T& dot, const T& sum) const {
    using std::abs;
    if (sum == 0) return 0;
    if (accumulation_.kind == Accumulation::Kind::exact_integer) {
      return abs(dot) > T(0x1p24) ? T(abs(dot) * u32) : T(0);
    }
    const int unit = query_units_[head_row] + pool_units_[static_cast<std::size_t>(pool)];
    const bool representable = unit >= -149 && folded_scales_ == 0;
    const double aligned = aligned_by(head_row, pool, unit);
    if (representable && aligned == 0 && sum <= T(std::ldexp(1.0, 23 + unit))) return 0;
    const double n = static_cast<double>(dim_);
    const double step = accumulation_.step;
    const double cut =
        std::ceil(n / step) * (step + 1) * std::ldexp(aligned, -accumulation_.fraction_bits);
    return sum * T(dot_error_ + n * epsilon<T>()) + cut + n * f32_subnormal;
  }

  // No sum or product on the way to the logit is larger, in any order and with each scale applied
  // wherever it may be; NaN when an operand is not a number.
  T largest_intermediate(std::size_t index, Eigen::Index pool, const Matrix<T>& sums) const {
    using std::abs;
    const double pool_scale = operands_.pool_scales.empty()
                                  ? 1.0
                                  : std::abs(operands_.pool_scales[static_cast<std::size_t>(pool)]);
    T total = 0;
    for (std::size_t h = 0; h < heads_; ++h) {
      const std::size_t at = index * heads_ + h;
      const T dot = sums(static_cast<Eigen::Index>(h), pool);
      const double scales = std::max(1.0, std::abs(query_scale(at))) * std::max(1.0, pool_scale);
      const double weight = std::abs(operands_.head_weights[at]);
      const double head_weight = weight * std::max(1.0, std::abs(operands_.logit_scale));
      total += T(scales) * (dot * std::max(1.0, head_weight) + T(head_weight));
    }
    return total;
  }

  double query_scale(std::size_t head_row) const {
    return operands_.query_scales.empty() ? 1.0 : operands_.query_scales[head_row];
  }

  Enclosed<T> logit(std::size_t index, Eigen::Index pool, const Matrix<T>& dots,
                    const Matrix<T>& sums, const std::vector<T>& head_weights) const {
    using std::abs;
    Enclosed<T> total;
    T magnitude = 0, largest_relu = 0;
    for (std::size_t h = 0; h < heads_; ++h) {
      const auto row = static_cast<Eigen::Index>(h);
      const T& dot = dots(row, pool);
      const T error = reach(index * heads_ + h, pool, dot, sums(row, pool));
      const auto relu = [](const T& x) { return x > 0 ? x : T(0); };
      const T least = relu(T(dot - error)), most = relu(T(dot + error));
      const T& w = head_weights[h];
      total.value += w * relu(dot);
      total.low += w > 0 ? T(w * least) : T(w * most);
      total.high += w > 0 ? T(w * most) : T(w * least);
      magnitude += abs(w) * most;
      // A head weight may be subnormal before its query's scale enlarges it, error and all.
      largest_relu += most * std::max(1.0, query_scale(index * heads_ + h));
    }
    const T scale = operands_.pool_scales.empty()
                        ? T(1)
                        : T(operands_.pool_scales[static_cast<std::size_t>(pool)]);
    // Prescaled head weights and products may be subnormal in binary32.
    const T underflow = largest_relu > 0
                            ? (largest_relu * 3 + static_cast<double>(heads_ + 4)) * f32_subnormal
                            : T(0);
    const double own = static_cast<double>(heads_ + 8);
    const T error = magnitude * (head_error_ + own * epsilon<T>()) + underflow;
    total.low -= error;
    total.high += error;
    if (scale < 0) std::swap(total.low, total.high);
    // The product with the scale may be subnormal too, however small the scale.
    const T last = underflow > 0 && !operands_.pool_scales.empty() ? f32_subnormal : 0.0;
    return {total.value * scale, total.low * scale - last, total.high * scale + last};
  }

  const LogitOperands& operands_;
  const Accumulation& accumulation_;
  std::size_t dim_, heads_;
  std::vector<int> query_units_, pool_units_;
  std::vector<Alignment> query_alignments_, pool_alignments_;
  Matrix<T> pools_, pool_magnitudes_;
  int folded_scales_ = 0;  // that round when multiplied into dequantised operands
  double dot_error_ = 0, head_error_ = 0;
};

template <class T>
Bounded logits_in(const LogitOperands& operands, std::span<const std::int64_t> visible,
                  const Accumulation& accumulation) {
  const std::int64_t columns =
      visible.empty() ? 0 : std::max<std::int64_t>(std::ranges::max(visible), 0);
  Bounded result(Shape{static_cast<std::int64_t>(visible.size()), columns});
  std::ranges::fill(result.value, std::nan(""));
  result.low = result.high = result.value;
  const LogitRows<T> rows(operands, accumulation);
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < visible.size(); ++i) {
    const auto part = [&](std::vector<double>& x) {
      return std::span(x).subspan(i * width, width);
    };
    rows.row(i, visible[i], part(result.value), part(result.low), part(result.high));
  }
  return result;
}

void check_sizes(const LogitOperands& operands, std::span<const std::int64_t> visible) {
  const auto n = visible.size();
  const auto heads = static_cast<std::size_t>(operands.heads);
  const auto dim = static_cast<std::size_t>(operands.head_dim);
  require(heads >= 1 && dim >= 1, "logits need at least one head and one channel");
  require(operands.queries.size() == n * heads * dim, "queries are [rows, heads, head_dim]");
  require(operands.head_weights.size() == n * heads, "head weights are [rows, heads]");
  require(operands.query_scales.empty() || operands.query_scales.size() == n * heads,
          "query scales are [rows, heads]");
  require(operands.pools.size() % dim == 0, "pools are [pools, head_dim]");
  const auto pools = operands.pools.size() / dim;
  require(operands.pool_scales.empty() || operands.pool_scales.size() == pools,
          "pool scales are [pools]");
  for (const std::int64_t count : visible) {
    require(count >= 0 && count <= static_cast<std::int64_t>(pools),
            "a row sees no more pools than there are");
  }
}

}  // namespace

Bounded logits(const LogitOperands& operands, std::span<const std::int64_t> visible,
               const Accumulation& accumulation, Precision precision) {
  check_sizes(operands, visible);
  return precision == Precision::binary64 ? logits_in<double>(operands, visible, accumulation)
                                          : logits_in<Quad>(operands, visible, accumulation);
}

}  // namespace indexpool::reference
