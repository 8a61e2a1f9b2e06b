// The shapes that kernels are compiled for: rows of the numeric modes times head dims. A mutant
// build puts a file of this name with fewer rows first on its include path.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// What a template needs to know of a numeric mode and a head dim.
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

namespace detail {

template <class I, class F>
bool try_instance(const Shape& shape, F&& f) {
  const NumericMode& mode = shape.mode;
  const bool same = shape.config.index_head_dim == I::head_dim && mode.storage == I::storage &&
                    mode.pool_rounding == I::rounding && mode.pooled == I::pooled &&
                    mode.hadamard == I::hadamard && mode.cache == I::cache &&
                    mode.scale == I::scale;
  if (same) f(I{});
  return same;
}

template <int D, class F>
bool with_mode(const Shape& shape, F&& f) {
  using enum DType;
  using enum PoolRounding;
  using enum ScaleRule;
  return try_instance<Instance<D, f32, storage_products, f32, false, f32, none>>(shape, f) ||
         try_instance<Instance<D, bf16, storage_products, bf16, false, bf16, none>>(shape, f) ||
         try_instance<Instance<D, f16, storage_products, f16, false, f16, none>>(shape, f) ||
         try_instance<Instance<D, bf16, f32_accumulate, bf16, false, bf16, none>>(shape, f) ||
         try_instance<Instance<D, bf16, f32_accumulate, bf16, true, e4m3, power_of_two>>(shape,
                                                                                         f) ||
         try_instance<Instance<D, bf16, f32_accumulate, bf16, true, e4m3, amax>>(shape, f) ||
         try_instance<Instance<D, bf16, f32_accumulate, bf16, true, i8, amax>>(shape, f);
}

}  // namespace detail

// Calls f(Instance<...>{}) for the instance that `shape` selects; false when there is none.
template <class F>
bool with_instance(const Shape& shape, F&& f) {
  return detail::with_mode<32>(shape, f) || detail::with_mode<64>(shape, f) ||
         detail::with_mode<128>(shape, f);
}

}  // namespace indexpool::kernels
