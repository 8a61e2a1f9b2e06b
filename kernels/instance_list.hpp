// The shapes that kernels are compiled for: rows of the numeric modes times head dims. A mutant
// build puts a file of this name with one row first on its include path.
#pragma once

#include "indexpool/kernels/instance.hpp"

namespace indexpool::kernels {
namespace detail {

using enum DType;
using enum PoolRounding;
using enum ScaleRule;

template <class A, class B>
struct Joined;
template <class... A, class... B>
struct Joined<InstanceList<A...>, InstanceList<B...>> {
  using type = InstanceList<A..., B...>;
};

template <int D>
using InstancesOfHeadDim =
    InstanceList<Instance<D, f32, storage_products, f32, false, f32, none>,
                 Instance<D, bf16, storage_products, bf16, false, bf16, none>,
                 Instance<D, f16, storage_products, f16, false, f16, none>,
                 Instance<D, bf16, f32_accumulate, bf16, false, bf16, none>,
                 Instance<D, bf16, f32_accumulate, bf16, true, e4m3, power_of_two>,
                 Instance<D, bf16, f32_accumulate, bf16, true, e4m3, amax>,
                 Instance<D, bf16, f32_accumulate, bf16, true, i8, amax>>;

}  // namespace detail

using Instances = detail::Joined<
    detail::Joined<detail::InstancesOfHeadDim<32>, detail::InstancesOfHeadDim<64>>::type,
    detail::InstancesOfHeadDim<128>>::type;

}  // namespace indexpool::kernels
