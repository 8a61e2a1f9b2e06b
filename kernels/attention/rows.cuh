// Elements of rows as f32, four at a time where it can be, and which instance a launch takes.
#pragma once

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

// f.template operator()<dim, storage>() for rows of 32, 64 or 128 channels.
template <class F>
void with_row_instance(std::int64_t dim, DType storage, F&& f) {
  const auto with_storage = [&]<int K>() {
    if (storage == DType::f32) return f.template operator()<K, DType::f32>();
    if (storage == DType::f16) return f.template operator()<K, DType::f16>();
    return f.template operator()<K, DType::bf16>();
  };
  if (dim == 32) return with_storage.template operator()<32>();
  if (dim == 64) return with_storage.template operator()<64>();
  return with_storage.template operator()<128>();
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
