#include "indexpool/verify/target_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "indexpool/verify/cache_layout.hpp"

namespace indexpool::verify {

TargetBuffer::TargetBuffer(kernels::Target& target, std::string name, std::int64_t bytes,
                           std::byte fill)
    : target_(&target),
      // An empty buffer still has an address, which nothing may read.
      data_(target.allocate(std::move(name), std::max<std::int64_t>(bytes, 1), fill)),
      bytes_(bytes) {}

TargetBuffer::TargetBuffer(TargetBuffer&& other) noexcept
    : target_(std::exchange(other.target_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

TargetBuffer& TargetBuffer::operator=(TargetBuffer&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

TargetBuffer::~TargetBuffer() {
  if (target_ != nullptr) target_->release(data_);
}

std::vector<std::byte> TargetBuffer::download() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_));
  if (bytes_ > 0) target_->download(bytes.data(), data_, bytes_);
  return bytes;
}

TargetBuffer upload(kernels::Target& target, std::string name, const void* from,
                    std::int64_t bytes) {
  TargetBuffer buffer(target, std::move(name), bytes);
  if (bytes > 0) target.upload(buffer.data(), from, bytes);
  return buffer;
}

TargetBuffer upload(kernels::Target& target, std::string name, const Tensor& tensor) {
  return upload(target, std::move(name), tensor.data(), tensor.bytes().value);
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template std::vector<float> values_of(const std::vector<std::byte>&);
template std::vector<std::int32_t> values_of(const std::vector<std::byte>&);
template std::vector<kernels::PoolChecksum> values_of(const std::vector<std::byte>&);

}  // namespace indexpool::verify
