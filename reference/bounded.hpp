// Values with a rigorous enclosure: what a correct implementation may answer.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "indexpool/model/tensor.hpp"

namespace indexpool::reference {

// value is the reference's own result; every correct implementation of the mode lies in
// [low, high], element by element. Exact results have low == value == high. Where an intermediate
// of a correct implementation may leave the range of binary32, anything may come out, NaN included:
// such an element is open, from -infinity to infinity.
struct Bounded {
  Shape shape;
  std::vector<double> value, low, high;

  Bounded() = default;
  explicit Bounded(Shape s);
  static Bounded exact(const Tensor& tensor);
  std::int64_t size() const { return static_cast<std::int64_t>(value.size()); }
};

inline bool is_open(double low, double high) {
  return low == -std::numeric_limits<double>::infinity() &&
         high == std::numeric_limits<double>::infinity();
}
inline bool admits(double low, double high, double x) {
  return (x >= low && x <= high) || is_open(low, high);
}

}  // namespace indexpool::reference
