// Values with a rigorous enclosure: what a correct implementation may answer.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/model/tensor.hpp"

namespace indexpool::reference {

// value is the reference's own result; every correct implementation of the mode lies in
// [low, high], element by element. Exact results have low == value == high.
struct Bounded {
  Shape shape;
  std::vector<double> value, low, high;

  Bounded() = default;
  explicit Bounded(Shape s);
  static Bounded exact(const Tensor& tensor);
  std::int64_t size() const { return static_cast<std::int64_t>(value.size()); }
};

}  // namespace indexpool::reference
