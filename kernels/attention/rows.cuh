// Elements of rows as f32, four at a time where it can be.
#pragma once

#include "indexpool/kernels/attention/row_instances.hpp"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <DType T>
IP_DEVICE float load_element(const std::byte* base, std::int64_t index) {
  if constexpr (T == DType::f32)
    return ip::load_global(reinterpret_cast<const float*>(base) + index);
  else
    return float_from_16<T>(ip::load_global(reinterpret_cast<const std::uint16_t*>(base) + index));
}

// Four floats of shared memory by one instruction.
struct alignas(16) Four {
  float x[4];
};
IP_DEVICE Four load_four(const float* shared) {
  return ip::load_shared(reinterpret_cast<const Four*>(shared));
}
IP_DEVICE void store_four(float* shared, const Four& four) {
  ip::store_shared(reinterpret_cast<Four*>(shared), four);
}

// Four elements from `index` on, a multiple of four, by one instruction.
struct alignas(8) FourHalves {
  std::uint32_t low, high;
};
template <DType T>
IP_DEVICE Four load_elements(const std::byte* base, std::int64_t index) {
  if constexpr (T == DType::f32) {
    return ip::load_global(
        reinterpret_cast<const Four*>(reinterpret_cast<const float*>(base) + index));
  } else {
    const auto halves = ip::load_global(reinterpret_cast<const FourHalves*>(base + 2 * index));
    return {{float_from_16<T>(static_cast<std::uint16_t>(halves.low & 0xffff)),
             float_from_16<T>(static_cast<std::uint16_t>(halves.low >> 16)),
             float_from_16<T>(static_cast<std::uint16_t>(halves.high & 0xffff)),
             float_from_16<T>(static_cast<std::uint16_t>(halves.high >> 16))}};
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
