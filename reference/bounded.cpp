#include "indexpool/reference/bounded.hpp"

#include <utility>

namespace indexpool::reference {

Bounded::Bounded(Shape s) : shape(std::move(s)) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  value.resize(count);
  low.resize(count);
  high.resize(count);
}

Bounded Bounded::exact(const Tensor& tensor) {
  Bounded result(tensor.shape());
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    result.value[static_cast<std::size_t>(i)] = tensor.at(i);
  }
  result.low = result.high = result.value;
  return result;
}

}  // namespace indexpool::reference
