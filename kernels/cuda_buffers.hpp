// Buffers on the device with guards on both ends. Internal to the CUDA target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace indexpool::kernels {

// Each buffer lies between two guards of 256 bytes filled with a fixed pattern.
class CudaBuffers {
 public:
  CudaBuffers() = default;
  ~CudaBuffers();
  CudaBuffers(const CudaBuffers&) = delete;
  CudaBuffers& operator=(const CudaBuffers&) = delete;

  // Filled with `poison`. Throws EnvironmentError naming the buffer when memory runs out.
  std::byte* allocate(std::string name, std::int64_t bytes, std::byte poison);
  void release(std::byte* buffer);
  // Throws ConfigError when [buffer, buffer + bytes) leaves the buffer.
  void check_range(const std::byte* begin, std::int64_t bytes) const;
  // Empty when all guards are intact, else which buffer was written outside, and where.
  std::string check_guards() const;

 private:
  struct Buffer {
    std::string name;
    std::int64_t bytes = 0;
  };
  std::map<const std::byte*, Buffer> buffers_;
  std::string damage_of_released_;

  std::string damage_of(const std::byte* begin, const Buffer& buffer) const;
};

}  // namespace indexpool::kernels
