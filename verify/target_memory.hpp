// Buffers of a target, released at the end of their scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/tensor.hpp"
#include "indexpool/verify/cache_layout.hpp"

namespace indexpool::verify {

class TargetBuffer {
 public:
  TargetBuffer() = default;
  TargetBuffer(kernels::Target& target, std::string name, std::int64_t bytes,
               std::byte fill = poison);
  TargetBuffer(TargetBuffer&& other) noexcept;
  TargetBuffer& operator=(TargetBuffer&& other) noexcept;
  TargetBuffer(const TargetBuffer&) = delete;
  TargetBuffer& operator=(const TargetBuffer&) = delete;
  ~TargetBuffer();

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::vector<std::byte> download() const;

 private:
  kernels::Target* target_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

TargetBuffer upload(kernels::Target& target, std::string name, const void* from,
                    std::int64_t bytes);
template <class T>
TargetBuffer upload(kernels::Target& target, std::string name, const std::vector<T>& values) {
  return upload(target, std::move(name), values.data(),
                static_cast<std::int64_t>(values.size() * sizeof(T)));
}
TargetBuffer upload(kernels::Target& target, std::string name, const Tensor& tensor);

// `bytes` seen as values of T.
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes);

}  // namespace indexpool::verify
