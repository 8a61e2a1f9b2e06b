// A dense row-major tensor: shape, element type, bytes it owns or views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/dtype.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool {

using Shape = std::vector<std::int64_t>;

std::int64_t element_count(
    const Shape& shape);                    // throws ConfigError on overflow or a negative size
std::string to_string(const Shape& shape);  // "[2, 37, 128]"

// Copies share storage; `clone` does not. A tensor read from a memory-mapped file keeps the mapping
// alive. `data()` of a mapped tensor must not be written.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);  // zero-filled
  Tensor(DType dtype, Shape shape, std::shared_ptr<std::byte> storage);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return size_; }
  Bytes bytes() const { return Bytes(size_ * info(dtype_).bytes); }
  bool empty() const { return size_ == 0; }
  std::int64_t dim(std::size_t axis) const { return shape_.at(axis); }

  std::byte* data() { return storage_.get(); }
  const std::byte* data() const { return storage_.get(); }
  std::span<const std::byte> raw() const {
    return {data(), static_cast<std::size_t>(bytes().value)};
  }

  // Typed view; throws InternalError when sizeof(T) is not the element size.
  template <class T>
  std::span<T> as() {
    check_element_size(sizeof(T));
    return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(size_)};
  }
  template <class T>
  std::span<const T> as() const {
    check_element_size(sizeof(T));
    return {reinterpret_cast<const T*>(data()), static_cast<std::size_t>(size_)};
  }

  double at(std::int64_t flat_index) const { return load_element(dtype_, data(), flat_index); }
  void set(std::int64_t flat_index, double v) { store_element(dtype_, data(), flat_index, v); }

  Tensor clone() const;
  Tensor converted(DType dtype) const;  // each element rounded once
  Tensor reshaped(Shape shape) const;   // shares storage; element counts must agree

 private:
  void check_element_size(std::size_t bytes) const;

  DType dtype_ = DType::u8;
  Shape shape_;
  std::int64_t size_ = 0;
  std::shared_ptr<std::byte> storage_;
};

}  // namespace indexpool
