// What a kernel's template needs to know of a numeric mode and a head dim.
#pragma once

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

template <class... I>
struct InstanceList {};

}  // namespace indexpool::kernels
