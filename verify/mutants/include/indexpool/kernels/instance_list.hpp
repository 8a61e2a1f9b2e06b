// The one shape that a mutant is compiled for: the numeric mode of its problems, head dim 32.
// Shadows kernels/instance_list.hpp.
#pragma once

#include "indexpool/kernels/instance.hpp"

namespace indexpool::kernels {
namespace detail {

using enum DType;
using enum PoolRounding;
using enum ScaleRule;

using hf_f32 = Instance<32, f32, storage_products, f32, false, f32, none>;
using hf_bf16 = Instance<32, bf16, storage_products, bf16, false, bf16, none>;
using vllm_fp8 = Instance<32, bf16, f32_accumulate, bf16, true, e4m3, power_of_two>;
using sglang_fp8 = Instance<32, bf16, f32_accumulate, bf16, true, e4m3, amax>;
using int8 = Instance<32, bf16, f32_accumulate, bf16, true, i8, amax>;

}  // namespace detail

using Instances = InstanceList<detail::INDEXPOOL_MUTANT_MODE>;

}  // namespace indexpool::kernels
