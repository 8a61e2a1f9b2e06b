// From a shape that is known when a kernel is launched to the instance it was compiled for.
#pragma once

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/instance.hpp"
#include "indexpool/kernels/instance_list.hpp"

namespace indexpool::kernels {
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

template <class... I, class F>
bool try_instances(InstanceList<I...>, const Shape& shape, F&& f) {
  return (try_instance<I>(shape, f) || ...);
}

}  // namespace detail

// Calls f(Instance<...>{}) for the instance that `shape` selects; false when there is none.
template <class F>
bool with_instance(const Shape& shape, F&& f) {
  return detail::try_instances(Instances{}, shape, f);
}

}  // namespace indexpool::kernels
