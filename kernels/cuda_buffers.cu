#include <algorithm>

#include "indexpool/kernels/cuda_buffers.hpp"
#include "indexpool/kernels/device_cuda.cuh"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t guard_bytes = 256;  // keeps the alignment cudaMalloc gives
constexpr int guard_value = 0xc5;

}  // namespace

CudaBuffers::~CudaBuffers() {
  for (const auto& [begin, buffer] : buffers_)
    cudaFree(const_cast<std::byte*>(begin) - guard_bytes);
}

std::byte* CudaBuffers::allocate(std::string name, std::int64_t bytes, std::byte poison) {
  if (bytes < 0) throw ConfigError("buffer '" + name + "' has a negative size");
  void* base = nullptr;
  const auto whole = static_cast<std::size_t>(bytes + 2 * guard_bytes);
  const std::string what =
      "allocating buffer '" + name + "' of " + std::to_string(bytes) + " bytes on the device";
  check_cuda(cudaMalloc(&base, whole), what.c_str());
  check_cuda(cudaMemset(base, guard_value, whole), "filling guards");
  std::byte* const begin = static_cast<std::byte*>(base) + guard_bytes;
  check_cuda(cudaMemset(begin, static_cast<int>(poison), static_cast<std::size_t>(bytes)),
             "poisoning a buffer");
  // A fill returns before it is done, on a stream that ours does not wait for: without this it may
  // land on top of what is uploaded next.
  check_cuda(cudaDeviceSynchronize(), "poisoning a buffer");
  buffers_[begin] = {std::move(name), bytes};
  return begin;
}

void CudaBuffers::release(std::byte* buffer) {
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end()) throw InternalError("release of something that is no buffer");
  if (damage_of_released_.empty()) damage_of_released_ = damage_of(buffer, found->second);
  buffers_.erase(found);
  check_cuda(cudaFree(buffer - guard_bytes), "freeing a buffer");
}

void CudaBuffers::check_range(const std::byte* begin, std::int64_t bytes) const {
  auto found = buffers_.upper_bound(begin);
  if (found != buffers_.begin()) {
    --found;
    if (begin + bytes <= found->first + found->second.bytes) return;
  }
  throw InternalError("a copy of " + std::to_string(bytes) + " bytes leaves every device buffer");
}

std::string CudaBuffers::damage_of(const std::byte* begin, const Buffer& buffer) const {
  std::vector<unsigned char> guard(guard_bytes);
  for (const bool after : {false, true}) {
    const std::byte* const at = after ? begin + buffer.bytes : begin - guard_bytes;
    check_cuda(cudaMemcpy(guard.data(), at, guard_bytes, cudaMemcpyDeviceToHost),
               "reading a guard");
    const auto intact = [](unsigned char value) { return value == guard_value; };
    const auto bad = std::find_if_not(guard.begin(), guard.end(), intact);
    if (bad == guard.end()) continue;
    const std::int64_t offset = bad - guard.begin();
    return "buffer '" + buffer.name + "' (" + std::to_string(buffer.bytes) +
           " bytes) was written " +
           (after ? std::to_string(offset) + " bytes past its end"
                  : std::to_string(guard_bytes - offset) + " bytes before its start");
  }
  return {};
}

std::string CudaBuffers::check_guards() const {
  if (!damage_of_released_.empty()) return damage_of_released_;
  for (const auto& [begin, buffer] : buffers_)
    if (std::string damage = damage_of(begin, buffer); !damage.empty()) return damage;
  return {};
}

}  // namespace indexpool::kernels
