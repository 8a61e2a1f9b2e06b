#include "indexpool/verify/faults/linear.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "indexpool/verify/checks/rounding.hpp"

namespace indexpool::verify::faults {
namespace {

double log2_of(std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n)) - 1; }

// The verifier's own sums are in binary64; D additions of it are worth far less than this.
constexpr double own_rounding = 1 + 1e-10;

// Half the distance to the neighbours of a code's value, in units of the scale. The division by the
// scale and the scale itself were rounded to f32 (nothing for powers of two).
double half_step(DType cache, double code) {
  const double step = cache == DType::i8 ? 0.5 : std::max(0x1p-4 * std::abs(code), 0x1p-10);
  return step + 4 * 0x1p-24 * (std::abs(code) + step);
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

struct LinearLink::Stored {
  std::vector<double> value, error;  // per channel: stored number, what quantising may have moved
  double y_norm = 0;                 // upper end of |y|_2
};

LinearLink::LinearLink(const PageShape& shape) : shape_(shape) {
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  std::vector<double> ones(dim, 1.0), position(dim);
  for (std::size_t c = 0; c < dim; ++c) {
    position[c] = static_cast<double>(c + 1) / static_cast<double>(dim);
  }
  plain_ = direction_of(std::move(ones));
  weighted_ = direction_of(std::move(position));
  sum_error_ = gamma(sum_depth(shape.head_dim));
  rotation_error_ = shape.mode.hadamard ? gamma(log2_of(shape.head_dim) + 2) : 0;
}

LinearLink::Direction LinearLink::direction_of(std::vector<double> v) const {
  Direction direction;
  direction.h = v;
  if (shape_.mode.hadamard) {
    const double root = std::sqrt(static_cast<double>(v.size()));
    for (std::size_t c = 0; c < v.size(); ++c) {
      double sum = 0;  // exact: multiples of 1 / D
      for (std::size_t j = 0; j < v.size(); ++j)
        sum += std::popcount(c & j) % 2 == 0 ? v[j] : -v[j];
      direction.h[c] = sum / root;
    }
  }
  direction.v_norm = norm(v);
  for (const double h : direction.h) direction.h_sum += std::abs(h);
  direction.v = std::move(v);
  return direction;
}

LinearLink::Stored LinearLink::decode(Bytes codes, Bytes scale_bytes) const {
  const DType cache = shape_.mode.cache;
  Stored stored;
  double scale = 1;
  if (shape_.quantised()) scale = load_element(DType::f32, scale_bytes.data(), 0);
  for (std::int64_t c = 0; c < shape_.head_dim; ++c) {
    const double code = load_element(cache, codes.data(), c);
    stored.value.push_back(scale * code);
    stored.error.push_back(shape_.quantised() ? std::abs(scale) * half_step(cache, code) : 0);
  }
  const DTypeInfo& pooled = info(shape_.mode.pooled);
  const double u = shape_.mode.pooled == DType::f32 ? 0 : pooled.unit_roundoff;
  const double floor = pooled.smallest_subnormal * std::sqrt(static_cast<double>(shape_.head_dim));
  double length = norm(stored.value) + norm(stored.error);
  if (shape_.mode.hadamard) {
    const double root = std::sqrt(static_cast<double>(shape_.head_dim));
    length = (length / (1 - u) + floor) / (1 - rotation_error_ * root);
  }
  stored.y_norm = length / (1 - u) + floor;
  return stored;
}

double LinearLink::bound(const Direction& direction, const Stored& stored) const {
  const DTypeInfo& pooled = info(shape_.mode.pooled);
  const double u = shape_.mode.pooled == DType::f32 ? 0 : pooled.unit_roundoff;
  // Rounding below the normal range, of the pooled dtype and of f32.
  double error = (pooled.smallest_subnormal + 0x1p-149) * static_cast<double>(shape_.head_dim + 1) +
                 pooled.smallest_subnormal * direction.h_sum;
  if (!shape_.mode.hadamard) {
    for (std::size_t c = 0; c < stored.value.size(); ++c) {
      const double most = (std::abs(stored.value[c]) + stored.error[c]) / (1 - u);
      error += direction.v[c] * ((u + sum_error_) * most + stored.error[c]);
    }
    return error * own_rounding;
  }
  error += (sum_error_ + u) * direction.v_norm * stored.y_norm;
  error += rotation_error_ * direction.h_sum * stored.y_norm;
  for (std::size_t c = 0; c < stored.value.size(); ++c) {
    const double most = (std::abs(stored.value[c]) + stored.error[c]) / (1 - u);
    error += std::abs(direction.h[c]) * (u * most + stored.error[c]);
  }
  return error * own_rounding;
}

double LinearLink::ratio(const Direction& direction, const Stored& stored, float found) const {
  double expected = 0;
  for (std::size_t c = 0; c < stored.value.size(); ++c) {
    expected += direction.h[c] * stored.value[c];
  }
  const double ratio = std::abs(found - expected) / bound(direction, stored);
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

double LinearLink::utilisation(Bytes codes, Bytes scale,
                               const kernels::PoolChecksum& checksum) const {
  const Stored stored = decode(codes, scale);
  return std::max(ratio(plain_, stored, checksum.sum),
                  ratio(weighted_, stored, checksum.weighted_sum));
}

}  // namespace indexpool::verify::faults
