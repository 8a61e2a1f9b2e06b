#include "indexpool/model/tensor.hpp"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/error.hpp"

namespace indexpool {

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw ConfigError(fmt::format("shape {} has the negative size {}", to_string(shape), size));
    }
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return 0;  // whatever the other sizes multiply to
  for (const std::int64_t size : shape) {
    count = checked_product(count, size, ("shape " + to_string(shape)).c_str());
  }
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), size_(element_count(shape_)) {
  const std::int64_t bytes = checked_product(size_, info(dtype).bytes, "bytes of a tensor");
  // One byte at least, so that an empty tensor has an address too.
  const auto allocated = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  storage_ =
      std::shared_ptr<std::byte>(new std::byte[allocated](), std::default_delete<std::byte[]>());
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<std::byte> storage)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(element_count(shape_)),
      storage_(std::move(storage)) {
  checked_product(size_, info(dtype).bytes, "bytes of a tensor");
  require(size_ == 0 || storage_ != nullptr, "a tensor with elements needs storage");
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  if (size_ > 0) std::memcpy(copy.data(), data(), raw().size());
  return copy;
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == dtype_) return clone();  // a double would not hold every i64
  Tensor result(dtype, shape_);
  for (std::int64_t i = 0; i < size_; ++i) result.set(i, at(i));
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  Tensor result(dtype_, std::move(shape), storage_);
  require(result.size_ == size_, "a reshaped tensor keeps its number of elements");
  return result;
}

void Tensor::check_element_size(std::size_t bytes) const {
  require(bytes == static_cast<std::size_t>(info(dtype_).bytes),
          "a tensor is viewed as elements of another size");
}

}  // namespace indexpool
