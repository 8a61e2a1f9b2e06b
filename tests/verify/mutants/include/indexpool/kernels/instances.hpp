// The shapes that mutants are compiled for: one head dim, and one mode for each way of pooling,
// scaling and multiplying. Shadows kernels/instances.hpp.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

template <int HeadDim, DType Storage, PoolRounding Rounding, DType Pooled, bool Hadamard,
          DType Cache, ScaleRule Scale>
struct Instance {
  static constexpr int head_dim = HeadDim;
  static constexpr DType storage = Storage;
  static constexpr PoolRounding rounding = Rounding;
  static constexpr DType pooled = Pooled;
  static constexpr bool hadamard = Hadamard;
  static constexpr DType cache = Cache;
  static constexpr ScaleRule scale = Scale;
  static constexpr bool quantised = Scale != ScaleRule::none;
};

// Calls f(Instance<...>{}) for the instance that `shape` selects; false when there is none.
template <class F>
bool with_instance(const Shape& shape, F&& f) {
  using enum DType;
  using enum PoolRounding;
  using enum ScaleRule;
  const auto try_one = [&]<class I>(I instance) {
    const NumericMode& mode = shape.mode;
    const bool same = shape.config.index_head_dim == I::head_dim && mode.storage == I::storage &&
                      mode.pool_rounding == I::rounding && mode.pooled == I::pooled &&
                      mode.hadamard == I::hadamard && mode.cache == I::cache &&
                      mode.scale == I::scale;
    if (same) f(instance);
    return same;
  };
  return try_one(Instance<32, f32, storage_products, f32, false, f32, none>{}) ||
         try_one(Instance<32, bf16, f32_accumulate, bf16, true, e4m3, power_of_two>{}) ||
         try_one(Instance<32, bf16, f32_accumulate, bf16, true, e4m3, amax>{});
}

}  // namespace indexpool::kernels
